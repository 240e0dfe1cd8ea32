/** When an attempt waited, was started and ran; on one scale for all of them. */
import type { Schema } from "@/api/client";
import type { Job } from "@/pages/jobs/actions/possible";

export type Attempt = Schema<"AttemptView">;
export type Phase = "wait" | "launch" | "run";

export interface Bar {
  readonly phase: Phase;
  /** Milliseconds. */
  readonly from: number;
  readonly to: number;
  readonly isOpen: boolean;
}

export interface Row {
  readonly number: number;
  readonly bars: readonly Bar[];
  /** Undefined for one that is still to come. */
  readonly attempt: Attempt | undefined;
}

export function rowsOf(job: Job, attempts: readonly Attempt[], now: number): Row[] {
  let free = Date.parse(job.created_at);
  const rows = attempts.map((attempt): Row => {
    const planned = Date.parse(attempt.planned_at);
    const started = attempt.started_at === null ? undefined : Date.parse(attempt.started_at);
    const isOpen = attempt.ended_at === null;
    const end = attempt.ended_at === null ? now : Date.parse(attempt.ended_at);
    const bars: Bar[] = [{ phase: "wait", from: Math.min(free, planned), to: planned, isOpen: false }];
    bars.push({ phase: "launch", from: planned, to: started ?? end, isOpen: started === undefined && isOpen });
    if (started !== undefined) bars.push({ phase: "run", from: started, to: end, isOpen });
    free = end;
    return { number: attempt.number, bars, attempt };
  });
  if (job.state === "queued") {
    // One that was started again by hand waits since then, not since its last end.
    const from = Math.max(free, job.queued_at === null ? free : Date.parse(job.queued_at));
    rows.push({
      number: attempts.length + 1,
      bars: [{ phase: "wait", from: Math.min(from, now), to: now, isOpen: true }],
      attempt: undefined,
    });
  }
  return rows;
}

export function spanOf(rows: readonly Row[]): [from: number, to: number] {
  const bars = rows.flatMap((row) => row.bars);
  const from = Math.min(...bars.map((bar) => bar.from));
  return [from, Math.max(from + 1, ...bars.map((bar) => bar.to))];
}
