/** Changes the number of GPUs of an elastic job, after a preview. */
import { NumberInput } from "@mantine/core";
import { useState } from "react";

import { ChangeDrawer } from "@/pages/jobs/actions/ChangeDrawer";
import type { Job } from "@/pages/jobs/actions/possible";
import { actions, texts } from "@/pages/jobs/actions/texts";
import { useTexts } from "@/texts/texts";

export function ResizeDrawer({ job, onClose }: { job: Job; onClose: () => void }) {
  const t = useTexts(texts);
  const ta = useTexts(actions);
  const [least, most] = [job.elastic?.min_gpus ?? 1, job.elastic?.max_gpus ?? 1];
  const [gpus, setGpus] = useState<number | string>(job.gpus);
  const isAllowed = typeof gpus === "number" && Number.isInteger(gpus) && gpus >= least && gpus <= most;
  return (
    <ChangeDrawer
      job={job}
      title={t("resizeTitle", { name: job.name })}
      action={ta("resize")}
      change={isAllowed && gpus !== job.gpus ? { gpus } : undefined}
      onClose={onClose}
    >
      <NumberInput
        label="GPU"
        description={t("resizeHint", { min: least, max: most, now: job.gpus })}
        error={isAllowed ? undefined : `${least} … ${most}`}
        min={least}
        max={most}
        allowDecimal={false}
        value={gpus}
        onChange={setGpus}
      />
    </ChangeDrawer>
  );
}
