/** Asks for the name of a view: one that no other view of the list has. */
import { Button, Group, Modal, Stack, TextInput } from "@mantine/core";
import { useState, type FormEvent } from "react";

import { isFreeName, type SavedViews } from "@/parts/table/savedViews";
import { texts } from "@/parts/table/texts";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

export function NameDialog({
  title,
  opened,
  initial,
  own,
  onClose,
  onName,
}: {
  title: string;
  opened: boolean;
  initial: string;
  own: SavedViews;
  onClose: () => void;
  onName: (name: string) => void;
}) {
  const t = useTexts(texts);
  const tc = useTexts(common);
  const [name, setName] = useState(initial);
  const isFree = isFreeName(own.saved, name);
  const isTaken = !isFree && name.trim() !== "" && name !== initial;
  function submit(event: FormEvent) {
    event.preventDefault();
    event.stopPropagation();
    if (!isFree) return;
    onName(name.trim());
    setName("");
    onClose();
  }
  return (
    <Modal opened={opened} onClose={onClose} title={title} closeButtonProps={{ "aria-label": tc("close") }}>
      <form onSubmit={submit}>
        <Stack>
          <TextInput
            label={t("viewName")}
            value={name}
            maxLength={40}
            data-autofocus
            onChange={(event) => setName(event.currentTarget.value)}
            error={isTaken ? t("nameTaken") : undefined}
          />
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              {tc("cancel")}
            </Button>
            <Button type="submit" disabled={!isFree}>
              {tc("save")}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
