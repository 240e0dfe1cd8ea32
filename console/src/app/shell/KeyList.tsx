/** Shows the keys of the console. */
import { Group, Kbd, Modal, SimpleGrid, Text } from "@mantine/core";

import { PAGES } from "@/app/pages";
import { useIsOperator } from "@/app/session";
import { bindingsFor } from "@/app/shell/keys";
import { texts } from "@/app/shell/texts";
import { common } from "@/texts/common";
import { navigation } from "@/texts/navigation";
import { useTexts } from "@/texts/texts";

export default function KeyList({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  const t = useTexts(texts);
  const tc = useTexts(common);
  const n = useTexts(navigation);
  const rows: (readonly [keys: readonly string[], text: string])[] = [
    [["Ctrl", "K"], t("palette")],
    [["/"], t("palette")],
    [["?"], t("keys")],
    ...bindingsFor(useIsOperator()).map(({ keys, path }) => {
      const page = PAGES.find((one) => one.path === path);
      return [keys, page === undefined ? path : n(page.name)] as const;
    }),
  ];
  return (
    <Modal
      opened={opened}
      onClose={onClose}
      title={t("keys")}
      size="lg"
      closeButtonProps={{ "aria-label": tc("close") }}
    >
      <SimpleGrid cols={{ base: 1, xs: 2 }} verticalSpacing={6}>
        {rows.map(([keys, text]) => (
          <Group key={keys.join(" ")} gap="xs" wrap="nowrap">
            <Group gap={4} w={84} wrap="nowrap">
              {keys.map((key, index) => (
                <Kbd key={index}>{key}</Kbd>
              ))}
            </Group>
            <Text size="sm">{text}</Text>
          </Group>
        ))}
      </SimpleGrid>
    </Modal>
  );
}
