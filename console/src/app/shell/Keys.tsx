/** Listens to the keys of the console, and shows them. Keys in fields and dialogs mean themselves. */
import { Group, Kbd, Modal, SimpleGrid, Text } from "@mantine/core";
import { useRouter } from "@tanstack/react-router";
import { useEffect, useMemo, useRef } from "react";

import { PAGES } from "@/app/pages";
import { useIsOperator } from "@/app/session";
import { bindingsFor, NOTHING, press } from "@/app/shell/keys";
import { texts } from "@/app/shell/texts";
import { common } from "@/texts/common";
import { navigation } from "@/texts/navigation";
import { useTexts } from "@/texts/texts";

export function Keys({ opened, onOpen, onClose }: { opened: boolean; onOpen: () => void; onClose: () => void }) {
  const t = useTexts(texts);
  const tc = useTexts(common);
  const n = useTexts(navigation);
  const router = useRouter();
  const isOperator = useIsOperator();
  const bindings = useMemo(() => bindingsFor(isOperator), [isOperator]);
  const state = useRef(NOTHING);
  useEffect(() => {
    function hear(event: KeyboardEvent) {
      if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || isTaken(event)) return;
      if (event.key === "?") {
        event.preventDefault();
        onOpen();
        return;
      }
      const { pressed, path } = press(state.current, event.key, event.timeStamp, bindings);
      state.current = pressed;
      if (path !== undefined) {
        event.preventDefault();
        router.history.push(path);
      }
    }
    window.addEventListener("keydown", hear);
    return () => window.removeEventListener("keydown", hear);
  }, [bindings, onOpen, router]);
  const rows: (readonly [keys: readonly string[], text: string])[] = [
    [["Ctrl", "K"], t("palette")],
    [["/"], t("palette")],
    [["?"], t("keys")],
    ...bindings.map(({ keys, path }) => {
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

/** Keys of fields, menus, dialogs, and of things that are moved by keyboard. */
function isTaken(event: KeyboardEvent): boolean {
  if (event.defaultPrevented) return true;
  if (document.querySelector("[role=dialog]:not([hidden]), [role=menu]") !== null) return true;
  const target = event.target;
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable ||
      target.closest("input, textarea, select, [role=application], [role=listbox], [aria-roledescription]") !== null)
  );
}
