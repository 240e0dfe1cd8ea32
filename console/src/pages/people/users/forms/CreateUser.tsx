import { PasswordInput, Radio, Stack, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";

import { api, sent } from "@/api/client";
import { UserCreate } from "@/api/limits";
import { USER_NAME } from "@/api/names";
import type { Secret } from "@/pages/people/users/forms/OneTimePassword";
import { makePassword } from "@/pages/people/users/forms/password";
import { EMAIL, UserFields, type Profile } from "@/pages/people/users/forms/UserFields";
import { texts } from "@/pages/people/users/texts";
import { FormDrawer } from "@/parts/FormDrawer";
import { useFormAction } from "@/parts/useFormAction";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

interface Values extends Profile {
  readonly name: string;
  readonly way: string;
  readonly password: string;
}

const FRESH: Values = {
  name: "",
  display_name: "",
  email: "",
  role: "scientist",
  group: "default",
  permission_group: "everyone",
  way: "make",
  password: "",
};

export function CreateUser({
  taken,
  onClose,
  onCreated,
}: {
  taken: readonly string[];
  onClose: () => void;
  onCreated: (secret: Secret | undefined) => void;
}) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const form = useForm<Values>({
    initialValues: FRESH,
    validateInputOnChange: true,
    validate: {
      name: (name) =>
        name === ""
          ? c("required")
          : !USER_NAME.test(name)
            ? t("nameBad")
            : taken.includes(name)
              ? t("nameTaken")
              : null,
      email: (email) => (email === "" || EMAIL.test(email) ? null : t("emailBad")),
      password: (password, { way }) =>
        way === "make" || password.length >= UserCreate.password.least
          ? null
          : t("passwordShort", { n: UserCreate.password.least }),
    },
  });
  const create = useFormAction(form, {
    run: createUser,
    touches: ["/users", "/groups", "/quotas", "/permission-groups"],
    done: (_, { name }) => t("created", { name }),
    onDone: (secret, { way }) => onCreated(way === "make" ? secret : undefined),
  });
  return (
    <FormDrawer opened title={t("createTitle")} onClose={onClose} {...create} submitLabel={c("create")}>
      <TextInput
        label={c("name")}
        description={t("nameHint")}
        required
        data-autofocus
        autoComplete="off"
        {...form.getInputProps("name")}
      />
      <UserFields form={form} />
      <Radio.Group label={t("password")} description={t("passwordHint")} {...form.getInputProps("way")}>
        <Stack gap={6} mt={6}>
          <Radio value="make" label={t("makePassword")} />
          <Radio value="give" label={t("givePassword")} />
        </Stack>
      </Radio.Group>
      {form.values.way === "give" && (
        <PasswordInput label={t("password")} autoComplete="new-password" required {...form.getInputProps("password")} />
      )}
    </FormDrawer>
  );
}

/** The password is set by a second request: that makes it one for a single use. Where it is refused, the user is taken back. */
async function createUser(values: Values): Promise<Secret> {
  const { name, display_name, email, role, group, permission_group } = values;
  const password = values.way === "make" ? makePassword() : values.password;
  const body = {
    name,
    display_name,
    email,
    role: role === "operator" ? "operator" : "scientist",
    group: group === "" ? null : group,
    permission_group,
  } as const;
  await sent(api.POST("/users", { body }));
  try {
    await sent(api.PATCH("/users/{name}", { params: { path: { name } }, body: { password } }));
  } catch (refused) {
    await sent(api.DELETE("/users/{name}", { params: { path: { name } } }));
    throw refused;
  }
  return { user: name, password };
}
