import { Select, SimpleGrid } from "@mantine/core";

import { useAll } from "@/api/useAll";
import { useForm } from "@/pages/jobs/newjob/form";
import { PlainFields } from "@/pages/jobs/newjob/steps/PlainFields";
import { texts } from "@/pages/jobs/newjob/texts";
import { useTexts } from "@/texts/texts";

export function OrderFields() {
  const t = useTexts(texts);
  const { draft, set, problem } = useForm();
  const queues = useAll("/queues").data ?? [];
  return (
    <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="md">
      <Select
        label={t("queue")}
        description={t("queueHint")}
        placeholder={t("queueAny")}
        clearable
        data={queues.map((queue) => queue.name)}
        value={draft.queue || null}
        onChange={(queue) => set({ queue: queue ?? "" })}
        error={problem("queue")}
      />
      <PlainFields place="order" />
    </SimpleGrid>
  );
}
