/** The measurements of a job's GPUs, for figures and charts. */
import { $api, type Schema } from "@/api/client";
import type { Line } from "@/charts/LineChart";
import { seriesColor } from "@/charts/colors";
import type { Format } from "@/texts/format";

export type Metrics = Schema<"JobMetricsView">;
export type MetricName = "utilization" | "memory_used" | "power" | "temperature";
export const METRICS: readonly MetricName[] = ["utilization", "memory_used", "power", "temperature"];

export function useReadings(job: string, perGpu: boolean) {
  return $api.useQuery(
    "get",
    "/jobs/{job}/metrics",
    { params: { path: { job }, query: { per_gpu: perGpu } } },
    { placeholderData: (before) => before },
  );
}

export function linesOf(metrics: Metrics, metric: MetricName, label: string): Line[] {
  const series = metrics.series.filter((one) => one.metric === metric);
  return series.map((one, index) => ({
    label: series.length > 1 || one.subject.includes("/") ? one.subject : label,
    color: seriesColor(index),
    points: withGaps(one.points, metrics.step_seconds),
  }));
}

/** Between attempts nothing was measured: the line is broken there. */
function withGaps(points: Schema<"SeriesView">["points"], step: number): (readonly [number, number | null])[] {
  const drawn: (readonly [number, number | null])[] = [];
  let before = Number.NaN;
  for (const point of points) {
    const at = Date.parse(point.at) / 1000;
    if (at - before > 3 * step) drawn.push([before + step, null]);
    drawn.push([at, point.mean]);
    before = at;
  }
  return drawn;
}

export function values(metrics: Metrics | undefined, metric: MetricName): number[] {
  return metrics?.series.find((one) => one.metric === metric)?.points.map((point) => point.mean) ?? [];
}

export function shownAs(metric: MetricName, format: Format): (value: number) => string {
  if (metric === "utilization") return (value) => format.percent(value);
  if (metric === "memory_used") return (value) => format.bytes(value);
  if (metric === "power") return (value) => format.watts(value);
  return (value) => format.celsius(value);
}
