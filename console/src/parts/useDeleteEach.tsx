/** Deleting several things: asked once, each for itself, and a result for each one. Refused ones stay. */
import { Table, Text } from "@mantine/core";

import { runEach, type Outcome } from "@/api/each";
import { useAction } from "@/api/useAction";
import { useConfirm } from "@/parts/confirm";
import { texts } from "@/parts/deletion.texts";
import { dialogs } from "@/parts/dialogs";
import { toastDone } from "@/parts/toasts";
import { useTexts, type Say } from "@/texts/texts";

interface Question {
  readonly title: string;
  readonly text: string;
  readonly action: string;
}

interface Deleting {
  readonly run: (name: string) => Promise<unknown>;
  readonly touches: readonly string[];
  readonly question: (names: readonly string[]) => Question;
  readonly onDone?: () => void;
}

export function useDeleteEach({ run, touches, question, onDone }: Deleting): (names: readonly string[]) => void {
  const t = useTexts(texts);
  const confirm = useConfirm();
  const remove = useAction<readonly string[], Outcome>({
    run: (names) => runEach(names, run),
    touches,
    onDone: (outcome, names) => {
      show(t, names, outcome);
      onDone?.();
    },
  });
  return (names) => confirm({ ...question(names), onConfirm: () => remove.mutate(names) });
}

function show(t: Say<typeof texts>, names: readonly string[], { done, refused }: Outcome): void {
  if (refused.length === 0) {
    toastDone(t("allDeleted", { names: names.join(", ") }));
    return;
  }
  const reasons = new Map(refused.map(({ name, problem }) => [name, problem.detail || problem.title]));
  dialogs.open({
    title: t("resultTitle", { done: done.length, n: names.length }),
    size: "lg",
    children: (
      <Table aria-label={t("result")}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>{t("item")}</Table.Th>
            <Table.Th>{t("result")}</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {names.map((name) => (
            <Table.Tr key={name}>
              <Table.Td>{name}</Table.Td>
              <Table.Td>
                <Text size="sm" c={reasons.has(name) ? "var(--mantine-color-error)" : undefined}>
                  {reasons.get(name) ?? t("deleted")}
                </Text>
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    ),
  });
}
