/** A new workbench at the side of the list, checked and tried out like every other job. */
import { Divider, SegmentedControl, Stack, Switch, TextInput } from "@mantine/core";
import { useCallback, useEffect, useState, type FormEvent } from "react";

import { api, sent, type Schema } from "@/api/client";
import type { Problem } from "@/api/problem";
import { useAction } from "@/api/useAction";
import { useAll } from "@/api/useAll";
import { workbenchBody } from "@/pages/jobs/newjob/draft/body";
import { changed, EMPTY, type Change, type Draft } from "@/pages/jobs/newjob/draft/draft";
import { FormContext, useField, useForm } from "@/pages/jobs/newjob/form";
import { PlanPanel } from "@/pages/jobs/newjob/PlanPanel";
import { QuotaPanel } from "@/pages/jobs/newjob/QuotaPanel";
import { CustomSize } from "@/pages/jobs/newjob/steps/CustomSize";
import { ImageStep } from "@/pages/jobs/newjob/steps/ImageStep";
import { OfferFields } from "@/pages/jobs/newjob/steps/OfferFields";
import { OrderFields } from "@/pages/jobs/newjob/steps/OrderFields";
import { Packages } from "@/pages/jobs/newjob/steps/Packages";
import { PlainFields } from "@/pages/jobs/newjob/steps/PlainFields";
import { StorageStep } from "@/pages/jobs/newjob/steps/StorageStep";
import { Surroundings } from "@/pages/jobs/newjob/steps/ToolsStep";
import { Variables } from "@/pages/jobs/newjob/steps/Variables";
import { focusWrong } from "@/pages/jobs/newjob/focusWrong";
import { useJobForm } from "@/pages/jobs/newjob/useJobForm";
import { texts as jobTexts } from "@/pages/jobs/newjob/texts";
import { texts } from "@/pages/workbenches/texts";
import { FormDrawer } from "@/parts/FormDrawer";
import { useTexts } from "@/texts/texts";

const NEW: Draft = { ...EMPTY, kind: "workbench" };

export function CreateDrawer({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  const t = useTexts(texts);
  const [draft, setDraft] = useState<Draft>(NEW);
  const [isAttempted, setAttempted] = useState(false);
  const [refused, setRefused] = useState<Problem | null>(null);
  const set = useCallback((change: Change) => setDraft((before) => changed(before, change)), []);
  const form = useJobForm({ draft, set, isAttempted, refused });
  const hasKeys = (useAll("/me/ssh-keys").data ?? []).length > 0;
  // Both switches are on from the beginning; SSH needs a key.
  useEffect(() => {
    if (opened && hasKeys) set({ ssh: true });
  }, [opened, hasKeys, set]);
  const create = useAction<Draft, Schema<"WorkbenchView">>({
    run: (asked) => sent(api.POST("/workbenches", { body: workbenchBody(asked) })),
    touches: ["/workbenches", "/jobs", "/me/quota", "/packages"],
    done: (bench) => t("created", { name: bench.name }),
    onDone: () => {
      setDraft(NEW);
      setAttempted(false);
      setRefused(null);
      onClose();
    },
    onProblem: setRefused,
  });
  function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    setAttempted(true);
    setRefused(null);
    const box = event.currentTarget;
    if (Object.keys(form.findings).length === 0) create.mutate(draft);
    else focusWrong(box);
  }
  return (
    <FormContext value={form}>
      <FormDrawer
        opened={opened}
        title={t("createTitle")}
        size="lg"
        onClose={onClose}
        onSubmit={submit}
        submitLabel={t("createIt")}
        busy={create.isPending}
        disabled={form.refusal !== undefined}
        problem={refused}
      >
        <Fields />
      </FormDrawer>
    </FormContext>
  );
}

function Fields() {
  const t = useTexts(texts);
  const j = useTexts(jobTexts);
  const { draft, set } = useForm();
  const field = useField();
  return (
    <Stack gap="md">
      <TextInput
        label={j("name")}
        description={j("nameHintNeeded")}
        withAsterisk
        autoComplete="off"
        data-autofocus
        {...field("name")}
      />
      <PlainFields place="name" />
      <Divider label={t("access")} labelPosition="left" />
      <OfferFields />
      <Divider label={t("sizeTitle")} labelPosition="left" />
      <SegmentedControl
        aria-label={t("sizeTitle")}
        value={draft.sizing === "package" ? "package" : "custom"}
        onChange={(sizing) => set({ sizing: sizing === "package" ? "package" : "custom" })}
        data={[
          { value: "package", label: j("packages") },
          { value: "custom", label: j("customSize") },
        ]}
      />
      {draft.sizing === "package" ? <Packages /> : <CustomSize />}
      <PlanPanel />
      <QuotaPanel />
      <Divider label={t("environment")} labelPosition="left" />
      <ImageStep />
      <Surroundings />
      <Variables />
      <Divider label={t("storage")} labelPosition="left" />
      <StorageStep />
      <Divider label={t("order")} labelPosition="left" />
      <OrderFields />
      <Switch
        label={t("holdIt")}
        checked={draft.hold}
        onChange={(event) => set({ hold: event.currentTarget.checked })}
      />
    </Stack>
  );
}
