import { useCallback } from "react";

import type { Job } from "@/pages/jobs/actions/possible";
import { texts } from "@/pages/jobs/job/texts";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

/** How large a job is, in words: "2 nodes with 8 GPUs each, A100". */
export function useSize(): (job: Job) => string {
  const t = useTexts(texts);
  const format = useFormat();
  return useCallback(
    (job) => {
      if (job.gpus === 0) return t("noGpus");
      const gpus = format.number(job.gpus);
      const size = job.nodes > 1 ? t("sizeNodes", { nodes: job.nodes, gpus }) : t("sizeText", { gpus });
      const model = job.allocation?.model || job.models.join(" / ");
      return model === "" ? size : `${size} ${model}`;
    },
    [t, format],
  );
}
