import { Stack, Text, ThemeIcon } from "@mantine/core";
import type { LucideIcon } from "lucide-react";
import type { ReactNode } from "react";

/** Where there is nothing to show: what is missing, and what to do next (as children: a button or a command). */
export function EmptyState({
  icon: Icon,
  title,
  hint,
  children,
}: {
  icon: LucideIcon;
  title: string;
  hint?: ReactNode;
  children?: ReactNode;
}) {
  return (
    <Stack align="center" gap="xs" py={48} px="md">
      <ThemeIcon variant="light" color="gray" size={44} radius="xl">
        <Icon size={22} aria-hidden />
      </ThemeIcon>
      <Text fw={600}>{title}</Text>
      {hint !== undefined && (
        <Text size="sm" c="dimmed" ta="center" maw={460} component="div">
          {hint}
        </Text>
      )}
      {children}
    </Stack>
  );
}
