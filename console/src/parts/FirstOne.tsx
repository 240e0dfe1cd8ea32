/** A list without anything in it: what such things are, the button that makes the first one, and the command. */
import { Stack, Text } from "@mantine/core";
import type { LucideIcon } from "lucide-react";
import type { ReactNode } from "react";

import { CopyText } from "@/parts/CopyText";
import { EmptyState } from "@/parts/EmptyState";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

export function FirstOne({
  icon,
  title,
  hint,
  command,
  children,
}: {
  icon: LucideIcon;
  title: string;
  hint: string;
  command: string;
  children: ReactNode;
}) {
  const t = useTexts(common);
  return (
    <EmptyState icon={icon} title={title} hint={hint}>
      <Stack align="center" gap="sm">
        {children}
        <Text size="xs" c="dimmed">
          {t("orByCommand")}
        </Text>
        <CopyText text={command} />
      </Stack>
    </EmptyState>
  );
}
