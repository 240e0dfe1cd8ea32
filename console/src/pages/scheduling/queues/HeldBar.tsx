/** The GPUs that a queue holds, compared with its guarantee: its own, borrowed ones, and those it is owed. */
import { Group, Progress, Text } from "@mantine/core";

import type { Queue } from "@/pages/scheduling/queues/draft";
import { holdingOf } from "@/pages/scheduling/queues/draft";
import { texts } from "@/pages/scheduling/queues/texts";
import { Faint } from "@/parts/DataTable";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

export function HeldBar({ queue }: { queue: Queue }) {
  const t = useTexts(texts);
  const format = useFormat();
  const { own, borrowed, owed, whole } = holdingOf(queue);
  const part = (gpus: number) => (whole === 0 ? 0 : (100 * gpus) / whole);
  if (queue.guaranteed_gpus === 0) return <span className="num">{format.number(queue.held_gpus)}</span>;
  const said = t("heldOf", {
    held: format.number(queue.held_gpus),
    guaranteed: format.number(queue.guaranteed_gpus),
  });
  const more = [
    borrowed > 0 && t("borrowed", { n: format.number(borrowed) }),
    owed > 0 && t("owed", { n: format.number(owed) }),
  ].filter((one) => one !== false);
  return (
    <>
      <Group gap={8} wrap="nowrap" justify="flex-end">
        <Progress.Root size={8} w={84} radius="xl">
          <Progress.Section value={part(own)} color="blue" aria-label={t("heldGpus")} aria-valuetext={said} />
          {borrowed > 0 && (
            <Progress.Section
              value={part(borrowed)}
              color="violet"
              striped
              aria-label={t("borrowedLabel")}
              aria-valuetext={format.number(borrowed)}
            />
          )}
          {owed > 0 && (
            <Progress.Section
              value={part(owed)}
              color="orange"
              striped
              aria-label={t("owedLabel")}
              aria-valuetext={format.number(owed)}
            />
          )}
        </Progress.Root>
        <Text size="sm" className="num">
          {said}
        </Text>
      </Group>
      {more.length > 0 && <Faint>{more.join(" · ")}</Faint>}
    </>
  );
}
