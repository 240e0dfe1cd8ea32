/** One measured series of a GPU or node as a titled chart. */
import { Title } from "@mantine/core";
import { useMemo } from "react";

import { seriesColor } from "@/charts/colors";
import { LineChart, type Mark } from "@/charts/LineChart";
import { pointsOf, seriesOf, type Metrics } from "@/charts/series";

export interface MetricChartProps {
  readonly title: string;
  /** Undefined while they load. */
  readonly metrics: Metrics | undefined;
  /** The metrics with their titles. */
  readonly lines: readonly (readonly [metric: string, label: string, color: number])[];
  readonly format: (value: number) => string;
  readonly max?: number;
  readonly binary?: boolean;
  readonly marks?: readonly Mark[];
  readonly onZoom?: (from: number, to: number) => void;
}

export function MetricChart({ title, metrics, lines, format, max, binary, marks, onZoom }: MetricChartProps) {
  // The caller writes the list anew each time; what it says rarely changes.
  const key = JSON.stringify(lines);
  const drawn = useMemo(
    () =>
      metrics === undefined
        ? undefined
        : (JSON.parse(key) as typeof lines).map(([metric, label, color]) => ({
            label,
            color: seriesColor(color),
            points: pointsOf(seriesOf(metrics, metric), metrics.step_seconds),
          })),
    [metrics, key],
  );
  return (
    <div style={{ minWidth: 0 }}>
      <Title order={3} size="sm" fw={500} mb={4}>
        {title}
      </Title>
      <LineChart
        label={title}
        lines={drawn}
        format={format}
        height={140}
        max={max}
        binary={binary}
        marks={marks}
        onZoom={onZoom}
      />
    </div>
  );
}
