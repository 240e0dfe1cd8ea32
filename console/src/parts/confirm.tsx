/** Asked before anything that destroys: what will happen, in words, with the button saying what it does. */
import { Text } from "@mantine/core";
import { useCallback, type ReactNode } from "react";

import { dialogs } from "@/parts/dialogs";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

export interface Question {
  readonly title: string;
  readonly text: ReactNode;
  /** The label of the button, such as "Delete the pool". */
  readonly action: string;
  readonly onConfirm: () => void;
  readonly danger?: boolean;
}

export function useConfirm(): (question: Question) => void {
  const t = useTexts(common);
  return useCallback(
    ({ title, text, action, onConfirm, danger = true }: Question) => {
      dialogs.confirm({
        title,
        children: (
          <Text size="sm" component="div">
            {text}
          </Text>
        ),
        labels: { confirm: action, cancel: t("cancel") },
        confirmProps: { color: danger ? "red" : "blue" },
        onConfirm,
      });
    },
    [t],
  );
}
