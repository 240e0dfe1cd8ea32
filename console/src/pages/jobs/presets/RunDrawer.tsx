/** A preset in a few fields: its parameters, a name, GPUs; with the same checks and dry run as the wizard. */
import { SimpleGrid, TextInput } from "@mantine/core";
import { useRouter } from "@tanstack/react-router";
import { useCallback, useState, type FormEvent } from "react";

import { api, sent, type Schema } from "@/api/client";
import { complete } from "@/api/complete";
import type { Problem } from "@/api/problem";
import { useAction } from "@/api/useAction";
import { jobBody } from "@/pages/jobs/newjob/body";
import { changed, ofPreset, type Change, type Draft } from "@/pages/jobs/newjob/draft";
import { focusWrong } from "@/pages/jobs/newjob/focusWrong";
import { FormContext, useField } from "@/pages/jobs/newjob/form";
import { PlanPanel } from "@/pages/jobs/newjob/PlanPanel";
import { Parameters } from "@/pages/jobs/newjob/steps/PresetFields";
import { useJobForm } from "@/pages/jobs/newjob/useJobForm";
import { texts as jobTexts } from "@/pages/jobs/newjob/texts";
import type { Preset } from "@/pages/jobs/presets/PresetCard";
import { texts } from "@/pages/jobs/presets/texts";
import { LABELS } from "@/pages/jobs/spec/fields";
import { FormDrawer } from "@/parts/FormDrawer";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

export function RunDrawer({ preset, onClose }: { preset: Preset; onClose: () => void }) {
  const t = useTexts(texts);
  const router = useRouter();
  const [draft, setDraft] = useState<Draft>(() => ({ ...ofPreset(preset.name), sizing: "custom" }));
  const [isAttempted, setAttempted] = useState(false);
  const [refused, setRefused] = useState<Problem | null>(null);
  const set = useCallback((change: Change) => setDraft((before) => changed(before, change)), []);
  const form = useJobForm({ draft, set, isAttempted, refused });
  const run = useAction<Draft, Schema<"JobView">>({
    run: (asked) => sent(api.POST("/jobs", { body: complete<Schema<"JobCreate">>(jobBody(asked)) })),
    touches: ["/jobs", "/overview", "/me/quota"],
    done: (job) => t("ran", { name: job.name }),
    onDone: (job) => router.history.push(`/jobs/${job.id}`),
    onProblem: setRefused,
  });
  function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    setAttempted(true);
    setRefused(null);
    if (Object.keys(form.findings).length === 0) run.mutate(draft);
    else focusWrong(event.currentTarget);
  }
  return (
    <FormContext value={form}>
      <FormDrawer
        opened
        title={t("runTitle", { title: preset.title || preset.name })}
        size="lg"
        onClose={onClose}
        onSubmit={submit}
        submitLabel={t("runIt")}
        busy={run.isPending}
        disabled={form.refusal !== undefined}
        problem={refused}
      >
        <SizeFields preset={preset} />
        <Parameters of={preset} />
        <PlanPanel />
      </FormDrawer>
    </FormContext>
  );
}

function SizeFields({ preset }: { preset: Preset }) {
  const j = useTexts(jobTexts);
  const label = useTexts(LABELS);
  const format = useFormat();
  const field = useField();
  const time =
    preset.time_limit_seconds === null
      ? undefined
      : j("asPreset", { value: format.duration(preset.time_limit_seconds) });
  return (
    <SimpleGrid cols={{ base: 1, xs: 3 }} spacing="md">
      <TextInput label={j("name")} description={j("givenName")} autoComplete="off" data-autofocus {...field("name")} />
      <TextInput
        label={j("gpusLabel")}
        description={j("gpusHint")}
        inputMode="decimal"
        placeholder={j("asPreset", { value: format.number(preset.gpus) })}
        {...field("gpus")}
      />
      <TextInput label={label("time")} description="90m, 2h, 1d12h" placeholder={time} {...field("time")} />
    </SimpleGrid>
  );
}
