import { PasswordInput, Switch, TextInput } from "@mantine/core";

import { api, sent } from "@/api/client";
import { IMAGE_NAME } from "@/api/names";
import { useIsOperator } from "@/app/session";
import type { Login } from "@/pages/jobs/images/LoginList";
import { REGISTRY } from "@/pages/jobs/images/rules";
import { texts } from "@/pages/jobs/images/texts";
import { FormDrawer } from "@/parts/FormDrawer";
import { textField, useFields } from "@/parts/useFields";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

const NEW = { name: "", registry: "", username: "", secret: "", platform: false };

/** A new login, or another secret for one that there is. */
export function LoginDrawer({
  login,
  opened,
  onClose,
}: {
  login: Login | undefined;
  opened: boolean;
  onClose: () => void;
}) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const isOperator = useIsOperator();
  const form = useFields<typeof NEW, Login>({
    start: () =>
      login === undefined
        ? NEW
        : { ...NEW, name: login.name, registry: login.registry, username: login.username, platform: login.platform },
    wrong: (fields) => {
      const missing = (["name", "registry", "username", "secret"] as const)
        .filter((name) => fields[name] === "")
        .map((name) => [name, { text: t("needed"), isMissing: true }]);
      return {
        name: IMAGE_NAME.test(fields.name) ? undefined : { text: t("nameBad") },
        registry: REGISTRY.test(fields.registry) ? undefined : { text: t("registryBad") },
        ...Object.fromEntries(missing),
      };
    },
    run: ({ name, ...body }) => sent(api.PUT("/registry-logins/{login}", { params: { path: { login: name } }, body })),
    touches: ["/registry-logins"],
    done: ({ name }) => t("saved", { name }),
    onDone: onClose,
  });
  const field = (name: "name" | "registry" | "username" | "secret") => ({
    ...textField(form, name),
    withAsterisk: true,
  });
  return (
    <FormDrawer
      opened={opened}
      title={login === undefined ? t("loginTitle") : t("loginReplaceTitle", { name: login.name })}
      onClose={onClose}
      onSubmit={form.submit}
      busy={form.busy}
      problem={form.problem}
    >
      <TextInput
        label={c("name")}
        disabled={login !== undefined}
        data-autofocus={login === undefined || undefined}
        {...field("name")}
      />
      <TextInput label={t("registry")} placeholder="registry.example.org" {...field("registry")} />
      <TextInput label={t("username")} autoComplete="off" {...field("username")} />
      <PasswordInput
        label={t("secret")}
        description={t("secretHint")}
        autoComplete="new-password"
        {...field("secret")}
      />
      {isOperator && (
        <Switch
          label={t("forPlatform")}
          checked={form.fields.platform}
          disabled={login !== undefined}
          onChange={(event) => form.set({ platform: event.currentTarget.checked })}
        />
      )}
    </FormDrawer>
  );
}
