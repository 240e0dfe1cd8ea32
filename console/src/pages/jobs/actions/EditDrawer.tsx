/** Where, how soon and for how long a job that does not run yet shall run. */
import { NumberInput, Select, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { useState } from "react";

import { api, sent, type Schema } from "@/api/client";
import type { Problem } from "@/api/problem";
import { useAction } from "@/api/useAction";
import { useAll } from "@/api/useAll";
import type { Job } from "@/pages/jobs/actions/possible";
import { texts } from "@/pages/jobs/actions/texts";
import { fieldErrors } from "@/parts/fieldErrors";
import { FormDrawer } from "@/parts/FormDrawer";
import { useTexts } from "@/texts/texts";

const FIELDS = ["queue", "priority", "time"] as const;
/** As the server reads durations: 90m, 1.5h, 1h30m; plain numbers are seconds. */
const DURATION = /^\s*(\d+(\.\d+)?\s*[smhdw]?\s*)+$/i;

export function EditDrawer({ job, title, onClose }: { job: Job; title: string; onClose: () => void }) {
  const t = useTexts(texts);
  const { data: queues } = useAll("/queues");
  const [problem, setProblem] = useState<Problem | null>(null);
  const form = useForm({
    initialValues: {
      queue: job.queue,
      priority: job.priority,
      time: job.time_limit_seconds === null ? "" : written(job.time_limit_seconds),
    },
    validateInputOnChange: true,
    validate: {
      priority: (value) => (Number.isInteger(value) && value >= 0 && value <= 100 ? null : t("priorityHint")),
      time: (value) => (value.trim() === "" || DURATION.test(value) ? null : t("timeWrong")),
    },
  });
  const edit = useAction<Schema<"JobEdit">, Job>({
    run: (body) => sent(api.PATCH("/jobs/{job}", { params: { path: { job: job.id } }, body })),
    touches: ["/jobs", "/queues", "/panel", "/events"],
    done: () => t("edited", { name: job.name }),
    onDone: onClose,
    onProblem: (found) => {
      const { beside, rest } = fieldErrors(found, FIELDS);
      form.setErrors(beside);
      setProblem(rest);
    },
  });
  const submit = form.onSubmit((values) => {
    const dirty = form.getDirty();
    const time = values.time.trim() === "" ? null : values.time.trim();
    // Only what was changed: what is not sent stays as it is.
    edit.mutate({
      ...(dirty.queue && { queue: values.queue }),
      ...(dirty.priority && { priority: values.priority }),
      ...(dirty.time && { time }),
    });
  });
  const names = [...new Set([...(queues ?? []).map((queue) => queue.name), job.queue])].sort();
  return (
    <FormDrawer
      opened
      title={`${title}: ${job.name}`}
      onClose={onClose}
      onSubmit={submit}
      busy={edit.isPending}
      disabled={!form.isDirty() || !form.isValid()}
      problem={problem}
    >
      <Select label={t("queue")} data={names} allowDeselect={false} searchable {...form.getInputProps("queue")} />
      <NumberInput
        label={t("priority")}
        description={t("priorityHint")}
        min={0}
        max={100}
        allowDecimal={false}
        {...form.getInputProps("priority")}
      />
      <TextInput label={t("time")} description={t("timeHint")} {...form.getInputProps("time")} />
    </FormDrawer>
  );
}

/** Seconds as one would type them. */
function written(seconds: number): string {
  const [unit, size] = (
    [
      ["d", 86_400],
      ["h", 3_600],
      ["m", 60],
    ] as const
  ).find(([, one]) => seconds % one === 0) ?? ["s", 1];
  return `${seconds / size}${unit}`;
}
