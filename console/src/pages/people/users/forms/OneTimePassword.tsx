import { Button, Group, Modal, Stack, Text } from "@mantine/core";

import { texts } from "@/pages/people/users/texts";
import { CopyText } from "@/parts/CopyText";
import { useTexts } from "@/texts/texts";

export interface Secret {
  readonly user: string;
  readonly password: string;
}

/** Shown this once. It closes only by its button, so that no stray click loses it. */
export function OneTimePassword({ secret, onClose }: { secret: Secret; onClose: () => void }) {
  const t = useTexts(texts);
  return (
    <Modal
      opened
      onClose={onClose}
      title={t("onceTitle", { name: secret.user })}
      closeOnClickOutside={false}
      closeOnEscape={false}
      withCloseButton={false}
    >
      <Stack gap="md">
        <Text size="sm">{t("onceText", { name: secret.user })}</Text>
        <CopyText text={secret.password} label={t("copyPassword")} />
        <Group justify="flex-end">
          <Button onClick={onClose}>{t("onceDone")}</Button>
        </Group>
      </Stack>
    </Modal>
  );
}
