/** Changes a job: where, how soon and for how long it shall run until it starts, and at any time the fields that only describe it. */
import { NumberInput, Select, Textarea, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";

import { api, sent, type Schema } from "@/api/client";
import { JobCreate } from "@/api/limits";
import { useAll } from "@/api/useAll";
import { isWaiting, type Job } from "@/pages/jobs/actions/possible";
import { texts } from "@/pages/jobs/actions/texts";
import { wrongWith } from "@/pages/jobs/newjob/draft/check";
import { texts as formTexts } from "@/pages/jobs/newjob/texts";
import { HINTS, LABELS, plainFieldsOf, typedValue } from "@/pages/jobs/spec/fields";
import { FormDrawer } from "@/parts/FormDrawer";
import { useFormAction } from "@/parts/useFormAction";
import { durationText, parseDuration } from "@/texts/durations";
import { useTexts } from "@/texts/texts";

export function EditDrawer({ job, title, onClose }: { job: Job; title: string; onClose: () => void }) {
  const t = useTexts(texts);
  const tf = useTexts(formTexts);
  const label = useTexts(LABELS);
  const hint = useTexts(HINTS);
  const rows = plainFieldsOf(job.kind === "workbench").filter((row) => row.isAlwaysEditable === true);
  const { data: queues } = useAll("/queues");
  const form = useForm({
    initialValues: {
      queue: job.queue,
      priority: job.priority,
      time: job.time_limit_seconds === null ? "" : durationText(job.time_limit_seconds),
      plain: Object.fromEntries(rows.map((row) => [row.name, typedValue(row, job)])),
    },
    validateInputOnChange: true,
    validate: {
      priority: (value) => (Number.isInteger(value) && value >= 0 && value <= 100 ? null : t("priorityHint")),
      time: (value) => (value.trim() === "" || parseDuration(value) !== undefined ? null : t("timeWrong")),
      plain: Object.fromEntries(
        rows.map((row) => [row.name, (value: unknown) => wrongWith(row, String(value), tf) ?? null]),
      ),
    },
  });
  const edit = useFormAction(form, {
    run: (values) => {
      const dirty = form.getDirty();
      const time = values.time.trim() === "" ? null : values.time.trim();
      // Fields that are not sent stay as they are.
      const body: Schema<"JobEdit"> = {
        ...(dirty.queue && { queue: values.queue }),
        ...(dirty.priority && { priority: values.priority }),
        ...(dirty.time && { time }),
        ...Object.fromEntries(
          rows
            .filter((row) => form.isDirty(`plain.${row.name}`))
            .map((row) => [row.name, values.plain[row.name]?.trim()]),
        ),
      };
      return sent(api.PATCH("/jobs/{job}", { params: { path: { job: job.id } }, body }));
    },
    touches: ["/jobs", "/queues", "/panel", "/events"],
    done: () => t("edited", { name: job.name }),
    undo: () => {
      const dirty = form.getDirty();
      const before: Schema<"JobEdit"> = {
        ...(dirty.queue && { queue: job.queue }),
        ...(dirty.priority && { priority: job.priority }),
        ...(dirty.time && { time: job.time_limit_seconds }),
        ...Object.fromEntries(
          rows.filter((row) => form.isDirty(`plain.${row.name}`)).map((row) => [row.name, typedValue(row, job)]),
        ),
      };
      return () => sent(api.PATCH("/jobs/{job}", { params: { path: { job: job.id } }, body: before }));
    },
    onDone: onClose,
  });
  const names = [...new Set([...(queues ?? []).map((queue) => queue.name), job.queue])].sort();
  return (
    <FormDrawer
      opened
      title={`${title}: ${job.name}`}
      onClose={onClose}
      {...edit}
      disabled={!form.isDirty() || !form.isValid()}
    >
      {isWaiting(job) && (
        <>
          <Select label={t("queue")} data={names} allowDeselect={false} searchable {...form.getInputProps("queue")} />
          <NumberInput
            label={t("priority")}
            description={t("priorityHint")}
            min={JobCreate.priority.least}
            max={JobCreate.priority.most}
            allowDecimal={false}
            {...form.getInputProps("priority")}
          />
          <TextInput label={t("time")} description={t("timeHint")} {...form.getInputProps("time")} />
        </>
      )}
      {rows.map((row) => (
        <Textarea
          key={row.name}
          label={label(row.name)}
          description={hint(row.name)}
          autosize
          maxRows={6}
          maxLength={row.most}
          {...form.getInputProps(`plain.${row.name}`)}
        />
      ))}
    </FormDrawer>
  );
}
