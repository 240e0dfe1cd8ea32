/** The operators' actions on one account, each with its confirmation. */
import { KeyRound, Pencil, Trash2, UserCheck, UserX } from "lucide-react";

import { api, sent } from "@/api/client";
import { useAction } from "@/api/useAction";
import { useMe } from "@/app/session";
import type { Secret } from "@/pages/people/users/forms/OneTimePassword";
import { makePassword } from "@/pages/people/users/forms/password";
import { refusalsFor, type User } from "@/pages/people/users/rules";
import { texts } from "@/pages/people/users/texts";
import { useConfirm } from "@/parts/confirm";
import type { RowAction } from "@/parts/RowMenu";
import { useDeleteEach } from "@/parts/useDeleteEach";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

export interface UserEvents {
  readonly onEdit: (name: string) => void;
  readonly onSecret: (secret: Secret) => void;
  readonly onDeleted: () => void;
}

export function useUserActions(
  everybody: readonly User[],
  { onEdit, onSecret, onDeleted }: UserEvents,
): (user: User) => readonly RowAction[] {
  const t = useTexts(texts);
  const c = useTexts(common);
  const me = useMe();
  const confirm = useConfirm();
  const reset = useAction<Secret, User>({
    run: ({ user, password }) =>
      sent(api.PATCH("/users/{name}", { params: { path: { name: user } }, body: { password } })),
    touches: ["/users"],
    onDone: (_, secret) => onSecret(secret),
  });
  const setDisabled = useAction<{ name: string; disabled: boolean }, User>({
    run: ({ name, disabled }) => sent(api.PATCH("/users/{name}", { params: { path: { name } }, body: { disabled } })),
    touches: ["/users"],
    optimistic: (cache, { name, disabled }) =>
      cache.changeItems<User>(
        "/users",
        (user) => user.name === name,
        (user) => ({ ...user, disabled }),
      ),
    done: (_, { name, disabled }) => t(disabled ? "disabledDone" : "enabledDone", { name }),
  });
  const remove = useDeleteUsers(onDeleted);
  return (user) => {
    const { name } = user;
    const refusals = refusalsFor(t, user, everybody, me.name);
    return [
      { label: c("edit"), icon: Pencil, onClick: () => onEdit(name) },
      {
        label: t("resetPassword"),
        icon: KeyRound,
        refusal: refusals.reset,
        onClick: () =>
          confirm({
            title: t("resetTitle", { name }),
            text: t("resetText", { name }),
            action: t("resetAction"),
            onConfirm: () => reset.mutate({ user: name, password: makePassword() }),
          }),
      },
      user.disabled
        ? { label: t("enable"), icon: UserCheck, onClick: () => setDisabled.mutate({ name, disabled: false }) }
        : {
            label: t("disable"),
            icon: UserX,
            refusal: refusals.weaken,
            onClick: () =>
              confirm({
                title: t("disableTitle", { name }),
                text: t("disableText"),
                action: t("disableAction"),
                onConfirm: () => setDisabled.mutate({ name, disabled: true }),
              }),
          },
      {
        label: c("delete"),
        icon: Trash2,
        danger: true,
        refusal: refusals.delete,
        onClick: () => remove([name]),
      },
    ];
  };
}

/** Asks once, deletes each user for itself, and reports the result of each. */
export function useDeleteUsers(onDone: () => void): (names: readonly string[]) => void {
  const t = useTexts(texts);
  return useDeleteEach({
    run: (name) => sent(api.DELETE("/users/{name}", { params: { path: { name } } })),
    touches: ["/users", "/groups", "/quotas", "/permission-groups"],
    onDone,
    question: (names) => ({
      title: t("deleteTitle", { n: names.length, names: names.join(", ") }),
      text: t("deleteText"),
      action: t("deleteAction", { n: names.length }),
    }),
  });
}
