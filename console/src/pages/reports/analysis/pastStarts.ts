/** Estimated and actual starts of jobs: points of a chart, grouped by how late the start was. */
import type { Schema } from "@/api/client";

export type Accuracy = Schema<"EstimateAccuracyView">;
type Past = Accuracy["recent"][number];

export const OUTCOMES = ["early", "between", "late"] as const;
/** Before p50, between p50 and p90, after p90. */
export type Outcome = (typeof OUTCOMES)[number];

export function outcomeOf({ p50, p90, started_at: started }: Past): Outcome {
  const at = Date.parse(started);
  return at <= Date.parse(p50) ? "early" : at <= Date.parse(p90) ? "between" : "late";
}

/** Seconds that a job was said to wait from then on (p50), and that it waited. */
export function pointOf({ made_at: made, p50, started_at: started }: Past): readonly [said: number, waited: number] {
  const from = Date.parse(made);
  return [Math.max(0, (Date.parse(p50) - from) / 1000), Math.max(0, (Date.parse(started) - from) / 1000)];
}
