import { Select, SimpleGrid, TextInput } from "@mantine/core";

import { useAll } from "@/api/useAll";
import { useField, useForm } from "@/pages/jobs/newjob/form";
import { texts } from "@/pages/jobs/newjob/texts";
import { useTexts } from "@/texts/texts";

export function OrderFields() {
  const t = useTexts(texts);
  const { draft, set, problem } = useForm();
  const field = useField();
  const queues = useAll("/queues").data ?? [];
  const isBench = draft.kind === "workbench";
  return (
    <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="md">
      <TextInput label={t("time")} description={t("timeHint")} placeholder="2h" {...field("time")} />
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
      <TextInput
        label={t("priority")}
        description={t("priorityHint")}
        placeholder="5"
        inputMode="numeric"
        {...field("priority")}
      />
      {!isBench && (
        <TextInput
          label={t("retries")}
          description={t("retriesHint")}
          placeholder="3"
          inputMode="numeric"
          {...field("max_retries")}
        />
      )}
    </SimpleGrid>
  );
}
