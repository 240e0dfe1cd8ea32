import { Button, Group, Text } from "@mantine/core";
import { Undo2 } from "lucide-react";

import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

/** The text of a toast with a button that takes the action back. */
export function UndoMessage({ text, onUndo }: { text: string; onUndo: () => void }) {
  const t = useTexts(common);
  return (
    <Group justify="space-between" gap="xs" wrap="nowrap">
      <Text size="sm">{text}</Text>
      <Button size="compact-sm" variant="light" leftSection={<Undo2 size={14} aria-hidden />} onClick={onUndo}>
        {t("undo")}
      </Button>
    </Group>
  );
}

/** The text of the toast after that. */
export function UndoneMessage() {
  const t = useTexts(common);
  return <Text size="sm">{t("undone")}</Text>;
}
