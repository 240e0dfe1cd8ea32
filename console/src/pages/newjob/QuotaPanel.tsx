/** What the viewer may still have of this kind, beside what the draft asks for. */
import { Group, Progress, Stack, Text } from "@mantine/core";

import type { Schema } from "@/api/client";
import { Panel } from "@/parts/Panel";
import { askedBy } from "@/pages/newjob/asked";
import { useForm } from "@/pages/newjob/form";
import { words } from "@/pages/newjob/words";
import { common, kinds } from "@/words/common";
import { useFormat } from "@/words/format";
import { useWords } from "@/words/words";

export function QuotaPanel() {
  const t = useWords(words);
  const c = useWords(common);
  const format = useFormat();
  const { draft, facts } = useForm();
  const kind = useWords(kinds)(draft.kind);
  const { quota } = facts;
  if (quota === undefined) return null;
  const asked = askedBy(draft, facts);
  const lines = [
    { label: c("gpus"), held: quota.gpus, asked: asked.gpus, text: format.number },
    { label: c("cpus"), held: quota.cpus, asked: asked.cpus, text: format.number },
    { label: c("memory"), held: quota.memory_bytes, asked: asked.memory_bytes, text: format.bytes },
  ].filter((line) => line.held.limit !== null);
  return (
    <Panel title={t("quota", { kind })}>
      {lines.length === 0 ? (
        <Text size="sm" c="dimmed">
          {t("quotaNone")}
        </Text>
      ) : (
        <Stack gap="sm">
          {lines.map((line) => (
            <QuotaLine key={line.label} {...line} />
          ))}
        </Stack>
      )}
    </Panel>
  );
}

function QuotaLine({
  label,
  held,
  asked,
  text,
}: {
  label: string;
  held: Schema<"HeldView">;
  asked: number;
  text: (value: number) => string;
}) {
  const t = useWords(words);
  const limit = held.limit ?? 0;
  const share = (amount: number) => (limit === 0 ? (amount > 0 ? 100 : 0) : Math.min(100, (amount / limit) * 100));
  const isOver = held.held + asked > limit;
  const said = t("quotaLine", { held: text(held.held), asked: text(asked), limit: text(limit) });
  return (
    <div>
      <Group justify="space-between" gap="xs">
        <Text size="sm">{label}</Text>
        <Text size="xs" className="num" c={isOver ? "var(--mantine-color-error)" : "dimmed"} fw={isOver ? 600 : 400}>
          {said}
        </Text>
      </Group>
      <Progress.Root size={6} radius="xl" mt={4}>
        <Progress.Section value={share(held.held)} color="gray" aria-label={`${label}: ${said}`} />
        <Progress.Section
          value={Math.min(100 - share(held.held), share(asked))}
          color={isOver ? "red" : "blue"}
          aria-hidden
        />
      </Progress.Root>
    </div>
  );
}
