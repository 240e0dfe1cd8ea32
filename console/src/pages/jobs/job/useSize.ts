import { useCallback } from "react";

import type { Job } from "@/pages/jobs/actions/possible";
import { texts } from "@/pages/jobs/job/texts";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

/** How large a job is, in words: "2 nodes with 8 A100 GPUs each". */
export function useSize(): (job: Job) => string {
  const t = useTexts(texts);
  const format = useFormat();
  return useCallback(
    (job) => {
      if (job.gpus === 0) return t("noGpus");
      const gpus = format.number(job.gpus);
      const name = job.allocation?.model || job.models.join(" / ");
      const model = name === "" ? "" : `${name} `;
      return job.nodes > 1 ? t("sizeNodes", { nodes: job.nodes, gpus, model }) : t("sizeText", { gpus, model });
    },
    [t, format],
  );
}
