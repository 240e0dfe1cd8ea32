import { PasswordInput, Switch, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";

import { api, sent } from "@/api/client";
import { IMAGE_NAME } from "@/api/names";
import { useIsOperator } from "@/app/session";
import type { Login } from "@/pages/jobs/images/LoginList";
import { REGISTRY } from "@/pages/jobs/images/rules";
import { texts } from "@/pages/jobs/images/texts";
import { FormDrawer } from "@/parts/FormDrawer";
import { useFormAction } from "@/parts/useFormAction";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

const NEW = { name: "", registry: "", username: "", secret: "", platform: false };

/** Creates a login, or replaces the secret of an existing one. */
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
  const given = (text: string) => (text === "" ? c("required") : null);
  const form = useForm({
    initialValues:
      login === undefined
        ? NEW
        : { ...NEW, name: login.name, registry: login.registry, username: login.username, platform: login.platform },
    validateInputOnChange: true,
    validate: {
      name: (name) => given(name) ?? (IMAGE_NAME.test(name) ? null : t("nameBad")),
      registry: (registry) => given(registry) ?? (REGISTRY.test(registry) ? null : t("registryBad")),
      username: given,
      secret: given,
    },
  });
  const save = useFormAction(form, {
    run: ({ name, ...body }) => sent(api.PUT("/registry-logins/{login}", { params: { path: { login: name } }, body })),
    touches: ["/registry-logins"],
    done: ({ name }) => t("saved", { name }),
    onDone: onClose,
  });
  const field = (name: "name" | "registry" | "username" | "secret") => ({
    ...form.getInputProps(name),
    withAsterisk: true,
  });
  return (
    <FormDrawer
      opened={opened}
      title={login === undefined ? t("loginTitle") : t("loginReplaceTitle", { name: login.name })}
      onClose={onClose}
      {...save}
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
          disabled={login !== undefined}
          {...form.getInputProps("platform", { type: "checkbox" })}
        />
      )}
    </FormDrawer>
  );
}
