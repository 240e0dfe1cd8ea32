/** When waiting jobs are planned or expected to start, read once for each queue that is in sight, not once for each job. */
import { useQueries } from "@tanstack/react-query";
import { createContext, useContext, useMemo } from "react";

import { $api, type Schema } from "@/api/client";
import { useAll } from "@/api/useAll";
import type { Job } from "@/pages/jobs/actions/possible";

type Place = Schema<"OrderedJobView">;

const Context = createContext<ReadonlyMap<string, Place>>(new Map());
export const PlannedStarts = Context.Provider;

/** A longer line is too much to read for a column; the job's own page shows the place. */
const LONGEST_LINE = 1_000;
const MOST_QUEUES = 6;

export function usePlannedStarts(jobs: readonly Job[] | undefined): ReadonlyMap<string, Place> {
  const { data: queues } = useAll("/queues");
  const names = useMemo(() => {
    const inSight = new Set(jobs?.filter((job) => job.state === "queued").map((job) => job.queue));
    const short = (queues ?? []).filter((queue) => inSight.has(queue.name) && queue.queued <= LONGEST_LINE);
    return short.slice(0, MOST_QUEUES).map((queue) => queue.name);
  }, [jobs, queues]);
  return useQueries({
    queries: names.map((name) => $api.queryOptions("get", "/queues/{name}/order", { params: { path: { name } } })),
    combine: combined,
  });
}

function combined(answers: readonly { readonly data?: Schema<"OrderView"> }[]): ReadonlyMap<string, Place> {
  const places = answers.flatMap((answer) => answer.data?.lines.flatMap((line) => line.jobs) ?? []);
  return new Map(places.flatMap((place) => (place.id === null ? [] : [[place.id, place] as const])));
}

/** The job's last known place in the line; undefined if the line is too long to be read. */
export function usePlace(job: string): Place | undefined {
  return useContext(Context).get(job);
}
