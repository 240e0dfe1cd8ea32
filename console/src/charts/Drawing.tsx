import {
  BarChart,
  LineChart,
  PieChart,
  ScatterChart,
  type BarSeriesOption,
  type LineSeriesOption,
  type PieSeriesOption,
  type ScatterSeriesOption,
} from "echarts/charts";
import {
  AriaComponent,
  GridComponent,
  LegendComponent,
  TooltipComponent,
  type GridComponentOption,
  type LegendComponentOption,
  type TooltipComponentOption,
} from "echarts/components";
import { init, use as register, type ComposeOption, type EChartsType } from "echarts/core";
import { CanvasRenderer } from "echarts/renderers";
import { useEffect, useRef } from "react";

import { SERIES_COLORS } from "@/charts/colors";
import { useIsDark } from "@/app/useIsDark";
import { useWidth } from "@/charts/useWidth";

register([
  BarChart,
  LineChart,
  PieChart,
  ScatterChart,
  GridComponent,
  TooltipComponent,
  LegendComponent,
  AriaComponent,
  CanvasRenderer,
]);

export type ChartOption = ComposeOption<
  | BarSeriesOption
  | LineSeriesOption
  | PieSeriesOption
  | ScatterSeriesOption
  | GridComponentOption
  | TooltipComponentOption
  | LegendComponentOption
>;

export default function Drawing({ label, option, height }: { label: string; option: ChartOption; height: number }) {
  const dark = useIsDark();
  const [frame, width] = useWidth();
  const chart = useRef<EChartsType>(undefined);

  useEffect(() => {
    if (frame.current === null) return undefined;
    const made = init(frame.current, undefined, { renderer: "canvas" });
    chart.current = made;
    return () => {
      made.dispose();
      chart.current = undefined;
    };
  }, [frame]);

  useEffect(() => {
    const ink = dark ? "#98a2b5" : "#5b6577";
    chart.current?.setOption(
      {
        color: [...SERIES_COLORS],
        textStyle: { color: ink, fontFamily: '"Inter Variable", sans-serif' },
        animationDuration: 200,
        ...option,
        tooltip: {
          backgroundColor: dark ? "#151c29" : "#fff",
          borderColor: dark ? "#2b3547" : "#dfe4ec",
          textStyle: { color: dark ? "#d5dae5" : "#1c2333", fontSize: 12 },
          confine: true,
          ...option.tooltip,
        },
      },
      { notMerge: true },
    );
  }, [option, dark]);

  useEffect(() => {
    if (width > 0) chart.current?.resize({ width, height });
  }, [width, height]);

  return <div ref={frame} role="img" aria-label={label} style={{ height, width: "100%" }} />;
}
