import { Group, Select, TextInput } from "@mantine/core";
import { Search } from "lucide-react";

import type { User } from "@/pages/people/users/rules";
import { texts } from "@/pages/people/users/texts";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

/** `group` may be "-" for those in none. */
export const FILTERS = { q: "", role: "", group: "", permission: "", state: "" };
export type Wanted = Readonly<Record<keyof typeof FILTERS, string>>;
const NO_GROUP = "-";

export function UserFilters({
  users,
  filters,
  onChange,
}: {
  users: readonly User[];
  filters: Wanted;
  onChange: (change: Partial<Wanted>) => void;
}) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const one = (label: string, name: keyof Wanted, data: readonly { value: string; label: string }[]) => (
    <Select
      size="xs"
      w={150}
      aria-label={label}
      placeholder={label}
      clearable
      data={[...data]}
      value={filters[name] === "" ? null : filters[name]}
      onChange={(value) => onChange({ [name]: value ?? "" })}
    />
  );
  const named = (names: readonly string[]) => [...new Set(names)].sort().map((name) => ({ value: name, label: name }));
  return (
    <Group gap="xs" mb="sm">
      <TextInput
        size="xs"
        w={230}
        aria-label={t("searchUsers")}
        placeholder={t("searchUsers")}
        leftSection={<Search size={14} />}
        value={filters.q}
        onChange={(event) => onChange({ q: event.currentTarget.value })}
      />
      {one(t("role"), "role", [
        { value: "operator", label: t("operator") },
        { value: "scientist", label: t("scientist") },
      ])}
      {one(c("group"), "group", [
        { value: NO_GROUP, label: t("noGroup") },
        ...named(users.flatMap((user) => (user.group === null ? [] : [user.group]))),
      ])}
      {one(t("permissionGroup"), "permission", named(users.map((user) => user.permission_group)))}
      {one(t("state"), "state", [
        { value: "active", label: t("active") },
        { value: "disabled", label: t("disabled") },
      ])}
    </Group>
  );
}

export function fits(user: User, filters: Wanted): boolean {
  const text = filters.q.trim().toLowerCase();
  return (
    (text === "" || [user.name, user.display_name, user.email].some((one) => one.toLowerCase().includes(text))) &&
    (filters.role === "" || user.role === filters.role) &&
    (filters.group === "" || (user.group ?? NO_GROUP) === filters.group) &&
    (filters.permission === "" || user.permission_group === filters.permission) &&
    (filters.state === "" || user.disabled === (filters.state === "disabled"))
  );
}
