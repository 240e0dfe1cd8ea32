/** The rest of the user's quota for this kind, beside the draft's request. */
import { Stack, Text } from "@mantine/core";

import { HeldBar } from "@/parts/HeldBar";
import { Panel } from "@/parts/Panel";
import { counted } from "@/parts/quotaUse";
import { askedBy } from "@/pages/jobs/newjob/draft/asked";
import { useForm } from "@/pages/jobs/newjob/form";
import { texts } from "@/pages/jobs/newjob/texts";
import { common, kinds } from "@/texts/common";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

export function QuotaPanel() {
  const t = useTexts(texts);
  const c = useTexts(common);
  const format = useFormat();
  const { draft, facts } = useForm();
  const kind = useTexts(kinds)(draft.kind);
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
          {lines.map(({ label, held, asked: wanted, text }) => (
            <HeldBar
              key={label}
              label={label}
              held={held}
              asked={wanted}
              said={t("quotaLine", { held: text(counted(held)), asked: text(wanted), limit: text(held.limit ?? 0) })}
            />
          ))}
        </Stack>
      )}
    </Panel>
  );
}
