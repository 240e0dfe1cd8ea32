import { Badge, Group } from "@mantine/core";
import { CircleCheck, KeyRound, Shield, UserRound, UserX } from "lucide-react";

import type { User } from "@/pages/people/users/rules";
import { texts } from "@/pages/people/users/texts";
import { useTexts } from "@/texts/texts";

export function RoleBadge({ role }: { role: User["role"] }) {
  const t = useTexts(texts);
  const Icon = role === "operator" ? Shield : UserRound;
  return (
    <Badge
      variant="light"
      color={role === "operator" ? "violet" : "gray"}
      tt="none"
      fw={500}
      leftSection={<Icon size={12} aria-hidden />}
    >
      {t(role === "operator" ? "operator" : "scientist")}
    </Badge>
  );
}

export function AccountBadge({ user }: { user: User }) {
  const t = useTexts(texts);
  const Icon = user.disabled ? UserX : CircleCheck;
  return (
    <Group gap={4}>
      <Badge
        variant="light"
        color={user.disabled ? "red" : "teal"}
        tt="none"
        fw={500}
        leftSection={<Icon size={12} aria-hidden />}
      >
        {t(user.disabled ? "disabled" : "active")}
      </Badge>
      {user.must_change_password && (
        <Badge variant="light" color="yellow" tt="none" fw={500} leftSection={<KeyRound size={12} aria-hidden />}>
          {t("mustChange")}
        </Badge>
      )}
    </Group>
  );
}
