/** Marks GPUs as suspect or failed, and shows the consequences before. */
import { SegmentedControl, Text, Textarea } from "@mantine/core";
import { useForm } from "@mantine/form";

import { api, sent } from "@/api/client";
import { runEach, type Outcome } from "@/api/each";
import type { Gpu } from "@/pages/fleet/gpus/rules";
import { TOUCHES } from "@/pages/fleet/gpus/useGpuActions";
import { texts } from "@/pages/fleet/gpus/texts";
import { FormDrawer } from "@/parts/FormDrawer";
import { useFormAction } from "@/parts/useFormAction";
import { useTexts } from "@/texts/texts";

const LONGEST = 500;

export function MarkDialog({
  gpus,
  onClose,
  onRefused,
}: {
  gpus: readonly Gpu[];
  onClose: () => void;
  onRefused: (outcome: Outcome) => void;
}) {
  const t = useTexts(texts);
  const form = useForm<{ health: "suspect" | "failed"; reason: string }>({
    initialValues: { health: "suspect", reason: "" },
    validateInputOnChange: true,
    validate: {
      reason: (text) => (text.trim() === "" ? t("reasonMissing") : text.length > LONGEST ? t("reasonLong") : null),
    },
  });
  const mark = useFormAction(form, {
    run: (body) =>
      runEach(
        gpus.map((gpu) => gpu.id),
        (gpu) => sent(api.POST("/gpus/{gpu}/mark", { params: { path: { gpu } }, body })),
      ),
    touches: TOUCHES,
    done: ({ done }) => (done.length > 0 ? t("markDone", { n: done.length }) : undefined),
    onDone: (outcome) => {
      onRefused(outcome);
      onClose();
    },
  });
  const { health } = form.values;
  const jobs = new Set(gpus.flatMap((gpu) => gpu.jobs.map((job) => job.id ?? `${gpu.id}-${job.user}`))).size;
  return (
    <FormDrawer opened title={t("markTitle", { n: gpus.length })} onClose={onClose} {...mark} submitLabel={t("markDo")}>
      <Text size="sm">{gpus.map((gpu) => gpu.id).join(", ")}</Text>
      <SegmentedControl
        aria-label={t("health")}
        data={[
          { value: "suspect", label: t("suspect") },
          { value: "failed", label: t("failed") },
        ]}
        {...form.getInputProps("health")}
      />
      <Text size="sm" c="dimmed">
        {t(`${health}Means`)} {health === "failed" && jobs > 0 && t("jobsMove", { n: jobs })}
      </Text>
      <Textarea
        label={t("reason")}
        description={t("reasonHint")}
        required
        autosize
        minRows={2}
        data-autofocus
        {...form.getInputProps("reason")}
      />
    </FormDrawer>
  );
}
