/** What can be done with the chosen rows, at the foot of the window while any are chosen. */
import { Button, Group, Paper, Text } from "@mantine/core";
import { X } from "lucide-react";
import type { ReactNode } from "react";

import { common } from "@/words/common";
import { useWords } from "@/words/words";

export function BatchBar({ count, label, onClear, note, children }: { count: number; label: string; onClear: () => void; note?: string | undefined; children: ReactNode }) {
  const t = useWords(common);
  if (count === 0) return null;
  return (
    <Paper className="panel" role="region" aria-label={label} pos="sticky" bottom={12} px="md" py={8} mt="md" shadow="md" style={{ zIndex: 5 }}>
      <Group gap="xs">
        <Text size="sm" fw={550} mr="sm">
          {t("selected", { n: count })}
        </Text>
        {children}
        <Button variant="subtle" color="gray" leftSection={<X size={14} />} onClick={onClear}>
          {t("clearSelection")}
        </Button>
        {note !== undefined && (
          <Text size="sm" c="dimmed">
            {note}
          </Text>
        )}
      </Group>
    </Paper>
  );
}
