/** The curves of some jobs. Outputs change without an event, so running jobs are looked at again. */
import { useQueries } from "@tanstack/react-query";
import { useMemo } from "react";

import { api, sent, type Schema } from "@/api/client";
import type { Problem } from "@/api/problem";
import type { Job } from "@/pages/jobs/actions/possible";
import type { OfJob } from "@/pages/jobs/curves/curves";

const AGAIN_MS = 10_000;

interface Curves {
  /** Undefined while the first ones load. */
  readonly jobs: readonly OfJob[] | undefined;
  readonly isComplete: boolean;
  readonly error: Problem | null;
  readonly retry: () => void;
}

export function useCurves(jobs: readonly Job[]): Curves {
  const results = useQueries({
    queries: jobs.map((job) => ({
      // The state is part of the key, so that the end is looked at.
      queryKey: ["get", "/jobs/{job}/curves", job.id, job.state],
      queryFn: (): Promise<Schema<"CurvesView">> =>
        sent(api.GET("/jobs/{job}/curves", { params: { path: { job: job.id } } })),
      refetchInterval: job.state === "running" ? AGAIN_MS : (false as const),
    })),
  });
  const ids = jobs.map((job) => job.id).join(" ");
  const key = results.map((result) => result.dataUpdatedAt).join(" ");
  const found = useMemo(
    () =>
      ids
        .split(" ")
        .flatMap((job, at) => (results[at]?.data === undefined ? [] : [{ job, curves: results[at].data.curves }])),
    // eslint-disable-next-line react-hooks/exhaustive-deps -- results are new objects with each drawing
    [ids, key],
  );
  const failed = results.find((result) => result.error !== null && result.data === undefined);
  return {
    jobs: results.some((result) => result.isPending) ? undefined : found,
    isComplete: results.every((result) => result.data?.complete !== false),
    error: (failed?.error as Problem | undefined) ?? null,
    retry: () => results.forEach((result) => void result.refetch()),
  };
}
