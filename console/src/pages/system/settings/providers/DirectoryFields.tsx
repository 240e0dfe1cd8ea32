/** The settings of a directory (LDAP): where people and groups are, and how it is reached. */
import { NumberInput, Select, Switch, TagsInput, Textarea, TextInput } from "@mantine/core";
import type { UseFormReturnType } from "@mantine/form";

import type { Schema } from "@/api/client";
import { texts } from "@/pages/system/settings/providers/texts";
import { useTexts } from "@/texts/texts";

export type Directory = Schema<"LdapSettingsView">;

const OPENLDAP: Directory = {
  base: "",
  user_filter: "(objectClass=person)",
  login_attribute: "uid",
  id_attribute: "entryUUID",
  name_attribute: "cn",
  email_attribute: "mail",
  bind_as: "",
  group_base: "",
  group_filter: "(objectClass=groupOfNames)",
  member_attribute: "member",
  nested: false,
  more_addresses: [],
  starttls: true,
  allow_plain: false,
  ca_certificate: "",
  refresh_minutes: 60,
};

/** By product: the names that it gives to attributes and kinds of entries. */
const PRODUCTS = {
  OpenLDAP: {},
  FreeIPA: { id_attribute: "ipaUniqueID", group_filter: "(objectClass=ipausergroup)" },
  "Active Directory": {
    user_filter: "(&(objectCategory=person)(objectClass=user))",
    login_attribute: "sAMAccountName",
    id_attribute: "objectGUID",
    name_attribute: "displayName",
    group_filter: "(objectClass=group)",
    nested: true,
  },
} as const satisfies Record<string, Partial<Directory>>;

type Product = keyof typeof PRODUCTS;

export function directoryOf(directory: Directory | null | undefined): Directory {
  return directory ?? OPENLDAP;
}

interface Props<Draft extends { directory: Directory }> {
  readonly form: UseFormReturnType<Draft>;
  readonly isNew: boolean;
}

export function DirectoryFields<Draft extends { directory: Directory }>({ form, isNew }: Props<Draft>) {
  const t = useTexts(texts);
  const { directory } = form.values;
  const set = (changes: Partial<Directory>) =>
    form.setValues({ directory: { ...directory, ...changes } } as Partial<Draft>);
  const isPlain = !directory.starttls;
  return (
    <>
      {isNew && (
        <Select
          label={t("product")}
          description={t("productHint")}
          data={Object.keys(PRODUCTS)}
          placeholder="OpenLDAP"
          onChange={(name) => name !== null && set({ ...attributesOf(OPENLDAP), ...PRODUCTS[name as Product] })}
        />
      )}
      <TextInput
        label={t("base")}
        placeholder="ou=people,dc=example,dc=org"
        required
        {...form.getInputProps("directory.base")}
      />
      <TextInput label={t("userFilter")} {...form.getInputProps("directory.user_filter")} />
      <TextInput
        label={t("groupBase")}
        description={t("groupBaseHint")}
        placeholder="ou=groups,dc=example,dc=org"
        {...form.getInputProps("directory.group_base")}
      />
      <TextInput label={t("groupFilter")} {...form.getInputProps("directory.group_filter")} />
      <TextInput label={t("memberAttribute")} {...form.getInputProps("directory.member_attribute")} />
      <Switch label={t("nested")} {...form.getInputProps("directory.nested", { type: "checkbox" })} />
      <TextInput label={t("loginAttribute")} {...form.getInputProps("directory.login_attribute")} />
      <TextInput
        label={t("idAttribute")}
        description={t("idAttributeHint")}
        {...form.getInputProps("directory.id_attribute")}
      />
      <TextInput
        label={t("bindAs")}
        description={t("bindAsHint")}
        placeholder="{}@example.org"
        {...form.getInputProps("directory.bind_as")}
      />
      <TagsInput
        label={t("moreAddresses")}
        description={t("moreAddressesHint")}
        {...form.getInputProps("directory.more_addresses")}
      />
      <Switch label={t("starttls")} {...form.getInputProps("directory.starttls", { type: "checkbox" })} />
      {isPlain && (
        <Switch label={t("allowPlain")} {...form.getInputProps("directory.allow_plain", { type: "checkbox" })} />
      )}
      <Textarea
        label={t("certificate")}
        description={t("certificateHint")}
        placeholder="-----BEGIN CERTIFICATE-----"
        autosize
        minRows={2}
        maxRows={6}
        {...form.getInputProps("directory.ca_certificate")}
      />
      <NumberInput
        label={t("refreshMinutes")}
        description={t("refreshMinutesHint")}
        min={5}
        max={1440}
        {...form.getInputProps("directory.refresh_minutes")}
      />
    </>
  );
}

/** The settings that depend on the product. */
function attributesOf(settings: Directory): Partial<Directory> {
  const { user_filter, login_attribute, id_attribute, name_attribute, group_filter, nested } = settings;
  return { user_filter, login_attribute, id_attribute, name_attribute, group_filter, nested };
}
