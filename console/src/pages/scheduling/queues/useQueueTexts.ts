/** A queue's settings in a few words. */
import { useCallback } from "react";

import type { Queue } from "@/pages/scheduling/queues/draft";
import { orderings, texts } from "@/pages/scheduling/queues/texts";
import { kinds as kindTexts } from "@/texts/common";
import { durationText } from "@/texts/durations";
import { useTextOr, useTexts } from "@/texts/texts";

/** The name of an ordering policy. */
export function usePolicyText(): (policy: string) => string {
  return useTextOr(orderings);
}

export function useLimitText(): (queue: Queue) => string {
  const t = useTexts(texts);
  const k = useTexts(kindTexts);
  return useCallback(
    (queue) => {
      const limits = [
        queue.max_gpus !== null && t("limitGpus", { n: queue.max_gpus }),
        queue.max_length !== null && t("limitLength", { n: queue.max_length }),
        queue.max_seconds !== null && t("limitTime", { time: durationText(queue.max_seconds) }),
        queue.min_job_gpus !== null && t("limitJobMin", { n: queue.min_job_gpus }),
        queue.max_job_gpus !== null && t("limitJobMax", { n: queue.max_job_gpus }),
        queue.kinds.length > 0 && t("limitKinds", { kinds: queue.kinds.map((kind) => k(kind)).join(", ") }),
      ].filter((limit) => limit !== false);
      return limits.length === 0 ? t("noLimits") : limits.join(" · ");
    },
    [t, k],
  );
}
