/** Numbers that programs report per step, for one job or several side by side. */
import type { Schema } from "@/api/client";
import type { Line } from "@/charts/LineChart";
import { seriesColor } from "@/charts/colors";

export type Curve = Schema<"CurveView">;

/** How strongly lines are smoothed: the weight of what came before. */
export const SMOOTHING = { none: 0, some: 0.6, much: 0.9 } as const;
export type Smoothing = keyof typeof SMOOTHING;

/** A curve of a job. */
export interface OfJob {
  readonly job: string;
  readonly curves: readonly Curve[];
}

/** The names of all curves, those that several jobs have first. */
export function namesOf(jobs: readonly OfJob[]): readonly string[] {
  const counts = new Map<string, number>();
  for (const { curves } of jobs)
    for (const name of new Set(curves.map((curve) => curve.name))) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].sort(([left, a], [right, b]) => b - a || left.localeCompare(right)).map(([name]) => name);
}

/** One line for each job that has the curve; the colour is that of the job in every chart. */
export function linesOf(jobs: readonly OfJob[], name: string, smoothing: Smoothing): Line[] {
  return jobs.flatMap(({ job, curves }, index) =>
    curves
      .filter((curve) => curve.name === name)
      .map((curve) => ({
        label: job,
        color: seriesColor(index),
        points: smoothed(
          curve.points.map((point) => [point.step, point.value] as const),
          SMOOTHING[smoothing],
        ),
      })),
  );
}

type Points = Line["points"];

/** An exponential mean that does not begin at zero; values that are missing stay missing. */
export function smoothed(points: Points, weight: number): Points {
  if (weight === 0) return points;
  let mean = 0;
  let seen = 0;
  return points.map(([step, value]) => {
    if (value === null) return [step, null];
    mean = weight * mean + (1 - weight) * value;
    seen += 1;
    return [step, mean / (1 - weight ** seen)];
  });
}

/** The bounds of the axis: around the values, not down to zero. */
export function boundsOf(lines: readonly Line[]): readonly [number, number] | undefined {
  const values = lines.flatMap((line) => line.points.flatMap(([, value]) => (value === null ? [] : [value])));
  if (values.length === 0) return undefined;
  const low = Math.min(...values);
  const high = Math.max(...values);
  const room = (high - low || Math.abs(high) || 1) * 0.05;
  return [low - room, high + room];
}

/** Four digits that matter: losses are small, counts are large. */
export function shown(value: number): string {
  if (value === 0) return "0";
  const size = Math.abs(value);
  return size >= 1e5 || size < 1e-3 ? value.toExponential(2) : String(Number(value.toPrecision(4)));
}
