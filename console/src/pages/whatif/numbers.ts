/** The numbers of two runs as people read them, side by side. */
import type { Schema } from "@/api/client";
import type { Format } from "@/texts/format";

export type Simulation = Schema<"SimulationView">;
export type Result = NonNullable<Simulation["result"]>;
export type Run = Result["base"];
export type Difference = Result["differences"][number];
export type Share = Result["groups"][number];
export type Policy = NonNullable<Result["policies"]>[number];
type Unit = Difference["unit"];

export function shownAs(unit: Unit, value: number | null, format: Format): string {
  if (value === null) return "–";
  if (unit === "seconds") return format.duration(value);
  if (unit === "fraction") return format.percent(value, 1);
  if (unit === "gpu_hours") return `${format.number(value)} h`;
  return format.number(value);
}

/** With its sign: "−12m", "+3.1%". */
export function changeText(unit: Unit, change: number | null, format: Format): string {
  if (change === null) return "–";
  const size = shownAs(unit, Math.abs(change), format);
  return change === 0 ? size : `${change < 0 ? "−" : "+"}${size}`;
}

export function percentText(percent: number | null): string {
  if (percent === null || !Number.isFinite(percent)) return "";
  const size = Math.abs(percent);
  const text = size >= 10 ? String(Math.round(size)) : size.toFixed(1);
  return `${percent < 0 ? "−" : "+"}${text}%`;
}

/** The part of its GPUs that a run holds, over time. */
export function usedOf(run: Run): readonly (readonly [at: number, part: number])[] {
  return pointsOf(run, run.course.used_gpus).map(([at, gpus]) => [at, run.gpus === 0 ? 0 : gpus / run.gpus]);
}

export function waitingOf(run: Run): readonly (readonly [at: number, jobs: number])[] {
  return pointsOf(run, run.course.waiting_jobs);
}

function pointsOf(run: Run, values: readonly number[]): readonly (readonly [number, number])[] {
  return run.course.times.map((at, index) => [Date.parse(at) / 1000, values[index] ?? 0]);
}

/** For an axis by powers of ten, which has no zero. */
export const LEAST_SECONDS = 1;

/** The distribution, starting at zero, so that two runs begin at the same place. */
export function cdfOf(run: Pick<Run, "waiting_cdf">): readonly (readonly [seconds: number, part: number])[] {
  const points = run.waiting_cdf.map(([seconds = 0, part = 0]) => [Math.max(LEAST_SECONDS, seconds), part] as const);
  return [[LEAST_SECONDS, 0], ...points];
}

export function isOver(simulation: Pick<Simulation, "state">): boolean {
  return simulation.state !== "waiting" && simulation.state !== "working";
}
