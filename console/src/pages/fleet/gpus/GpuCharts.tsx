import { ChartGrid } from "@/charts/ChartGrid";
import { MetricChart } from "@/charts/MetricChart";
import { certain, useRange } from "@/charts/ranges";
import { useMarks } from "@/charts/useMarks";
import { useMetrics } from "@/charts/useMetrics";
import { megahertz } from "@/pages/fleet/gpus/GpuTable";
import type { Gpu } from "@/pages/fleet/gpus/rules";
import { texts } from "@/pages/fleet/gpus/texts";
import { ProblemNote } from "@/parts/ProblemNote";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

export function GpuCharts({ gpu }: { gpu: Gpu }) {
  const t = useTexts(texts);
  const format = useFormat();
  const [range, setRange] = useRange();
  const marks = useMarks(range, gpu.id);
  const onZoom = (from: number, to: number) => setRange(certain(from, to));
  const { data, error, refetch } = useMetrics({ of: "gpu", id: gpu.id }, range);
  if (error !== null && data === undefined) return <ProblemNote error={error} onRetry={() => void refetch()} />;
  return (
    <ChartGrid>
      <MetricChart
        title={t("utilization")}
        metrics={data}
        marks={marks}
        onZoom={onZoom}
        lines={[["utilization", t("thisGpu"), 1]]}
        format={(value) => format.percent(value)}
        max={1}
      />
      <MetricChart
        title={t("memory")}
        metrics={data}
        marks={marks}
        onZoom={onZoom}
        lines={[["memory_used", t("thisGpu"), 4]]}
        binary
        format={format.bytes}
        max={gpu.memory_bytes}
      />
      <MetricChart
        title={t("temperature")}
        metrics={data}
        marks={marks}
        onZoom={onZoom}
        lines={[["temperature", t("thisGpu"), 3]]}
        format={format.celsius}
      />
      <MetricChart
        title={t("power")}
        metrics={data}
        marks={marks}
        onZoom={onZoom}
        lines={[["power", t("thisGpu"), 2]]}
        format={format.watts}
        max={gpu.reading?.power_limit_watts ?? undefined}
      />
      <MetricChart
        title={t("clocks")}
        metrics={data}
        marks={marks}
        onZoom={onZoom}
        lines={[
          ["sm_clock", t("sm"), 0],
          ["memory_clock", t("memoryClock"), 9],
        ]}
        format={megahertz}
      />
    </ChartGrid>
  );
}
