/** Bars, pies, scatters, lines over something else than time, by ECharts, loaded when first needed. For lines over time take `LineChart`. */
import { Skeleton } from "@mantine/core";
import { lazy, Suspense } from "react";

import type { ChartOption } from "@/charts/Drawing";

const Drawing = lazy(() => import("@/charts/Drawing"));

export interface ChartProps {
  /** A description of the chart with its main figures, for screen readers. */
  readonly label: string;
  readonly option: ChartOption;
  readonly height?: number;
}

export function Chart({ label, option, height = 240 }: ChartProps) {
  return (
    <Suspense fallback={<Skeleton h={height} />}>
      <Drawing label={label} option={option} height={height} />
    </Suspense>
  );
}
