import { useForm } from "@mantine/form";
import type { FormEvent } from "react";

import { api, sent } from "@/api/client";
import { moveUsers } from "@/pages/people/groups/moveUsers";
import type { User } from "@/pages/people/users/rules";
import { EMAIL, UserFields, type Profile } from "@/pages/people/users/forms/UserFields";
import { texts } from "@/pages/people/users/texts";
import { useConfirm } from "@/parts/confirm";
import { FormDrawer } from "@/parts/FormDrawer";
import { useFormAction } from "@/parts/useFormAction";
import { useTexts } from "@/texts/texts";

export function EditUser({
  user,
  roleRefusal,
  onClose,
}: {
  user: User;
  roleRefusal: string | undefined;
  onClose: () => void;
}) {
  const t = useTexts(texts);
  const form = useForm<Profile>({
    initialValues: {
      display_name: user.display_name,
      email: user.email,
      role: user.role,
      group: user.group ?? "",
      permission_group: user.permission_group,
    },
    validateInputOnChange: true,
    validate: { email: (email) => (email === "" || EMAIL.test(email) ? null : t("emailBad")) },
  });
  const save = useFormAction(form, {
    run: (values) => saveUser(user, values),
    touches: ["/users", "/groups", "/permission-groups", "/me"],
    done: () => t("saved", { name: user.name }),
    onDone: onClose,
  });
  const confirm = useConfirm();
  const { name } = user;
  function submit(event: FormEvent<HTMLFormElement>) {
    if (form.values.role === user.role) {
      save.onSubmit(event);
      return;
    }
    event.preventDefault();
    const toOperator = form.values.role === "operator";
    confirm({
      title: t("roleTitle", { name, role: t(toOperator ? "anOperator" : "aScientist") }),
      text: t(toOperator ? "toOperatorText" : "toScientistText", { name }),
      action: t("roleAction"),
      danger: !toOperator,
      onConfirm: () => save.onSubmit(),
    });
  }
  return (
    <FormDrawer opened title={t("editTitle", { name })} onClose={onClose} {...save} onSubmit={submit}>
      <UserFields form={form} roleRefusal={roleRefusal} />
    </FormDrawer>
  );
}

/** Sends only changed fields, so that changes of other operators are kept. */
async function saveUser(user: User, values: Profile): Promise<void> {
  const changes = {
    ...(values.display_name !== user.display_name ? { display_name: values.display_name } : {}),
    ...(values.email !== user.email ? { email: values.email } : {}),
    ...(values.role !== user.role
      ? { role: values.role === "operator" ? ("operator" as const) : ("scientist" as const) }
      : {}),
    ...(values.permission_group !== user.permission_group ? { permission_group: values.permission_group } : {}),
  };
  if (Object.keys(changes).length > 0)
    await sent(api.PATCH("/users/{name}", { params: { path: { name: user.name } }, body: changes }));
  await moveUsers({ users: [user], group: values.group === "" ? null : values.group });
}
