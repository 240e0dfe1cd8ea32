/** With how many GPUs an elastic job shall go on. */
import { NumberInput } from "@mantine/core";
import { useState, type FormEvent } from "react";

import { api, sent } from "@/api/client";
import type { Problem } from "@/api/problem";
import { useAction } from "@/api/useAction";
import type { Job } from "@/pages/jobs/actions/possible";
import { actions, texts } from "@/pages/jobs/actions/texts";
import { FormDrawer } from "@/parts/FormDrawer";
import { useTexts } from "@/texts/texts";

export function ResizeDrawer({ job, onClose }: { job: Job; onClose: () => void }) {
  const t = useTexts(texts);
  const ta = useTexts(actions);
  const [least, most] = [job.elastic?.min_gpus ?? 1, job.elastic?.max_gpus ?? 1];
  const [gpus, setGpus] = useState<number | string>(job.gpus);
  const [problem, setProblem] = useState<Problem | null>(null);
  const isRight = typeof gpus === "number" && Number.isInteger(gpus) && gpus >= least && gpus <= most;
  const resize = useAction<number, Job>({
    run: (count) => sent(api.POST("/jobs/{job}/resize", { params: { path: { job: job.id } }, body: { gpus: count } })),
    touches: ["/jobs", "/gpus", "/overview", "/events"],
    done: (_, count) => t("resized", { name: job.name, n: count }),
    onDone: onClose,
    onProblem: setProblem,
  });
  const hint = t("resizeHint", { min: least, max: most, now: job.gpus });
  function submit(event: FormEvent) {
    event.preventDefault();
    if (isRight) resize.mutate(gpus);
  }
  return (
    <FormDrawer
      opened
      title={t("resizeTitle", { name: job.name })}
      onClose={onClose}
      onSubmit={submit}
      submitLabel={ta("resize")}
      busy={resize.isPending}
      disabled={!isRight || gpus === job.gpus}
      problem={problem}
    >
      <NumberInput
        label="GPU"
        description={hint}
        min={least}
        max={most}
        allowDecimal={false}
        value={gpus}
        onChange={setGpus}
        error={isRight ? undefined : `${least} … ${most}`}
      />
    </FormDrawer>
  );
}
