/** Measured series as the charts take them. */
import type { Schema } from "@/api/client";
import type { Line } from "@/charts/LineChart";

export type Metrics = Schema<"MetricsView">;
export type Series = Schema<"SeriesView">;
export type Points = Line["points"];

/** With a gap wherever steps are missing: a line must not be drawn through a time without measurements. */
export function pointsOf(series: Series | undefined, stepSeconds: number): Points {
  const points: [number, number | null][] = [];
  let before: number | undefined;
  for (const point of series?.points ?? []) {
    const at = Date.parse(point.at) / 1000;
    if (before !== undefined && at - before > 2.5 * stepSeconds) points.push([before + stepSeconds, null]);
    points.push([at, point.mean]);
    before = at;
  }
  return points;
}

/** The series of a metric; of a subject, where there are several. */
export function seriesOf(metrics: Metrics | undefined, metric: string, subject?: string): Series | undefined {
  return metrics?.series.find((one) => one.metric === metric && (subject === undefined || one.subject === subject));
}

/** A few values for a small line: the means of equal parts. */
export function sparkOf(series: Series | undefined, most = 40): number[] {
  const values = series?.points.map((point) => point.mean) ?? [];
  if (values.length <= most) return values;
  return Array.from({ length: most }, (_, part) => {
    const some = values.slice(
      Math.floor((part * values.length) / most),
      Math.floor(((part + 1) * values.length) / most),
    );
    return some.reduce((sum, value) => sum + value, 0) / some.length;
  });
}
