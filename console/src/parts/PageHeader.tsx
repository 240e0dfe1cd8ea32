import { Group, Text, Title } from "@mantine/core";
import { useEffect, type ReactNode } from "react";

/** The head of a page: its one `h1`, a line about it, and its main actions on the right. Also names the browser's tab. */
export function PageHeader({ title, detail, children }: { title: string; detail?: ReactNode; children?: ReactNode }) {
  useEffect(() => {
    document.title = `${title} · corral`;
  }, [title]);
  return (
    <Group justify="space-between" align="center" mb="md" gap="sm">
      <Group gap="sm" align="baseline">
        <Title order={1}>{title}</Title>
        {detail !== undefined && (
          <Text c="dimmed" size="sm" component="div">
            {detail}
          </Text>
        )}
      </Group>
      <Group gap="xs">{children}</Group>
    </Group>
  );
}
