/** What was measured in the last hours or days, kept current: asked again when readings arrive and a new step can have begun. */
import { useQuery, type UseQueryResult } from "@tanstack/react-query";
import { useCallback } from "react";

import { api, sent } from "@/api/client";
import type { ServerEvent } from "@/api/events";
import { useLiveEvents } from "@/api/LiveProvider";
import type { Problem } from "@/api/problem";
import { secondsOf, type Range } from "@/charts/ranges";
import type { Metrics } from "@/charts/series";

/** Of the whole installation, of a GPU, or of a node. */
export type Measured =
  | { readonly of: "everything" }
  | { readonly of: "gpu"; readonly id: string }
  | { readonly of: "node"; readonly id: string };

/** A chart of more points than this shows nothing more. */
const STEPS = 300;

export function useMetrics(measured: Measured, range: Range): UseQueryResult<Metrics, Problem> {
  const result = useQuery<Metrics, Problem>({
    // Not found by the path: a reading every few seconds must not fetch thirty days each time.
    queryKey: ["metrics", measured, range],
    queryFn: () => fetchMetrics(measured, new Date(Date.now() - secondsOf(range) * 1000).toISOString()),
    placeholderData: (before) => before,
  });
  const { dataUpdatedAt, refetch } = result;
  const hear = useCallback(
    (event: ServerEvent) => {
      const stepMs = (secondsOf(range) / STEPS) * 1000;
      if (event.name === "readings" && document.visibilityState === "visible" && Date.now() - dataUpdatedAt >= stepMs)
        void refetch();
    },
    [dataUpdatedAt, refetch, range],
  );
  useLiveEvents(hear);
  return result;
}

function fetchMetrics(measured: Measured, since: string): Promise<Metrics> {
  const query = { since };
  if (measured.of === "gpu")
    return sent(api.GET("/gpus/{gpu}/metrics", { params: { path: { gpu: measured.id }, query } }));
  if (measured.of === "node")
    return sent(api.GET("/nodes/{node}/metrics", { params: { path: { node: measured.id }, query } }));
  return sent(api.GET("/trends", { params: { query } }));
}
