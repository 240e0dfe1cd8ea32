/** Why a job has its place, in the viewer's language. */
import { useCallback } from "react";

import { texts } from "@/pages/scheduling/queue/texts";
import type { Place } from "@/pages/scheduling/queue/order";
import { useTexts } from "@/texts/texts";

export function useReason(policy: string): (place: Place) => string {
  const t = useTexts(texts);
  return useCallback(
    (place) => {
      const score = (place.score ?? 0).toPrecision(3).replace(/\.?0+$/, "");
      if (place.pinned) return t("byPin");
      if (policy === "fcfs") return t("byAge");
      if (policy === "priority") return t("byPriority", { priority: place.priority });
      if (policy === "fair-share")
        return t(place.moved ? "byOwnOrder" : "byScore", { score, priority: place.priority });
      // A policy that the console does not know yet explains itself.
      return place.detail;
    },
    [policy, t],
  );
}
