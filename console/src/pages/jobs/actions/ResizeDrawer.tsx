/** Changes the number of GPUs of an elastic job. */
import { NumberInput } from "@mantine/core";
import { useForm } from "@mantine/form";

import { api, sent } from "@/api/client";
import type { Job } from "@/pages/jobs/actions/possible";
import { actions, texts } from "@/pages/jobs/actions/texts";
import { FormDrawer } from "@/parts/FormDrawer";
import { useFormAction } from "@/parts/useFormAction";
import { useTexts } from "@/texts/texts";

export function ResizeDrawer({ job, onClose }: { job: Job; onClose: () => void }) {
  const t = useTexts(texts);
  const ta = useTexts(actions);
  const [least, most] = [job.elastic?.min_gpus ?? 1, job.elastic?.max_gpus ?? 1];
  const form = useForm({
    initialValues: { gpus: job.gpus },
    validateInputOnChange: true,
    validate: {
      gpus: (gpus) => (Number.isInteger(gpus) && gpus >= least && gpus <= most ? null : `${least} … ${most}`),
    },
  });
  const resize = useFormAction(form, {
    run: (body) => sent(api.POST("/jobs/{job}/resize", { params: { path: { job: job.id } }, body })),
    touches: ["/jobs", "/gpus", "/overview", "/events"],
    done: (_, { gpus }) => t("resized", { name: job.name, n: gpus }),
    onDone: onClose,
  });
  const hint = t("resizeHint", { min: least, max: most, now: job.gpus });
  return (
    <FormDrawer
      opened
      title={t("resizeTitle", { name: job.name })}
      onClose={onClose}
      {...resize}
      submitLabel={ta("resize")}
      disabled={form.errors.gpus !== undefined || form.values.gpus === job.gpus}
    >
      <NumberInput
        label="GPU"
        description={hint}
        min={least}
        max={most}
        allowDecimal={false}
        {...form.getInputProps("gpus")}
      />
    </FormDrawer>
  );
}
