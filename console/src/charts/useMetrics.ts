/** Measurements of the last hours or days, requested again when readings arrive and a new step can have begun. */
import { useQuery, type UseQueryResult } from "@tanstack/react-query";
import { useCallback } from "react";

import { api, sent } from "@/api/client";
import type { ServerEvent } from "@/api/events";
import { useLiveEvents } from "@/api/LiveProvider";
import type { Problem } from "@/api/problem";
import { boundsOf, isPreset, secondsOf, writeRange, type Range } from "@/charts/ranges";
import type { Metrics } from "@/charts/series";

/** The subject of the measurements: the whole installation, a GPU, or a node. */
export type Measured =
  | { readonly of: "everything" }
  | { readonly of: "gpu"; readonly id: string }
  | { readonly of: "node"; readonly id: string };

/** A chart of more points than this shows nothing more. */
const STEPS = 300;

export function useMetrics(measured: Measured, range: Range): UseQueryResult<Metrics, Problem> {
  const result = useQuery<Metrics, Problem>({
    // Not found by the path: a reading every few seconds must not fetch thirty days each time.
    queryKey: ["metrics", measured, writeRange(range)],
    queryFn: () => fetchMetrics(measured, boundsOf(range, Date.now())),
    placeholderData: (before) => before,
  });
  const { dataUpdatedAt, refetch } = result;
  const hear = useCallback(
    (event: ServerEvent) => {
      // A certain time in the past does not change any more.
      if (!isPreset(range)) return;
      const stepMs = (secondsOf(range) / STEPS) * 1000;
      if (event.name === "readings" && document.visibilityState === "visible" && Date.now() - dataUpdatedAt >= stepMs)
        void refetch();
    },
    [dataUpdatedAt, refetch, range],
  );
  useLiveEvents(hear);
  return result;
}

function fetchMetrics(
  measured: Measured,
  query: { readonly since: string; readonly until?: string },
): Promise<Metrics> {
  if (measured.of === "gpu")
    return sent(api.GET("/gpus/{gpu}/metrics", { params: { path: { gpu: measured.id }, query } }));
  if (measured.of === "node")
    return sent(api.GET("/nodes/{node}/metrics", { params: { path: { node: measured.id }, query } }));
  return sent(api.GET("/trends", { params: { query } }));
}
