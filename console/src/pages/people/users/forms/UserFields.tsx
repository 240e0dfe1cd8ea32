/** The fields that a new user and a known one share. */
import { Select, TextInput } from "@mantine/core";
import type { UseFormReturnType } from "@mantine/form";

import { UserCreate } from "@/api/limits";
import { useAll } from "@/api/useAll";
import { texts } from "@/pages/people/users/texts";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

export interface Profile {
  readonly display_name: string;
  readonly email: string;
  readonly role: string;
  /** Empty: in no group. */
  readonly group: string;
  readonly permission_group: string;
}

export const EMAIL = /^[^@\s]+@[^@\s]+$/;

export function UserFields<T extends Profile>({
  form,
  roleRefusal,
}: {
  form: UseFormReturnType<T>;
  roleRefusal?: string | undefined;
}) {
  const t = useTexts(texts);
  return (
    <>
      <TextInput
        label={t("displayName")}
        maxLength={UserCreate.display_name.most}
        {...form.getInputProps("display_name")}
      />
      <TextInput label={t("email")} type="email" maxLength={UserCreate.email.most} {...form.getInputProps("email")} />
      <Select
        label={t("role")}
        description={roleRefusal ?? t("roleHint")}
        disabled={roleRefusal !== undefined}
        allowDeselect={false}
        data={[
          { value: "scientist", label: t("scientist") },
          { value: "operator", label: t("operator") },
        ]}
        {...form.getInputProps("role")}
      />
      <Belonging group={form.getInputProps("group")} permissionGroup={form.getInputProps("permission_group")} />
    </>
  );
}

type InputProps = ReturnType<UseFormReturnType<Profile>["getInputProps"]>;

/** Group and permission group. */
export function Belonging({ group, permissionGroup }: { group: InputProps; permissionGroup: InputProps }) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const groups = useAll("/groups");
  const permissionGroups = useAll("/permission-groups");
  return (
    <>
      <Select
        label={c("group")}
        description={t("groupHint")}
        allowDeselect={false}
        data={[
          { value: "", label: t("noGroup") },
          ...(groups.data ?? []).map((one) => ({
            value: one.name,
            label: one.pool === null ? one.name : `${one.name} (${one.pool})`,
          })),
        ]}
        {...group}
      />
      <Select
        label={t("permissionGroup")}
        allowDeselect={false}
        data={(permissionGroups.data ?? []).map((one) => one.name)}
        {...permissionGroup}
      />
    </>
  );
}
