import { ChartGrid } from "@/charts/ChartGrid";
import { MetricChart } from "@/charts/MetricChart";
import { certain, useRange } from "@/charts/ranges";
import { useMarks } from "@/charts/useMarks";
import { useMetrics } from "@/charts/useMetrics";
import type { Node } from "@/pages/fleet/nodes/rules";
import { texts } from "@/pages/fleet/nodes/texts";
import { ProblemNote } from "@/parts/ProblemNote";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

export function NodeCharts({ node }: { node: Node }) {
  const t = useTexts(texts);
  const format = useFormat();
  const [range, setRange] = useRange();
  const marks = useMarks(range, node.id);
  const onZoom = (from: number, to: number) => setRange(certain(from, to));
  const { data, error, refetch } = useMetrics({ of: "node", id: node.id }, range);
  if (error !== null && data === undefined) return <ProblemNote error={error} onRetry={() => void refetch()} />;
  const rate = (value: number) => `${format.bytes(value)}/s`;
  return (
    <ChartGrid>
      <MetricChart
        title={t("cpu")}
        metrics={data}
        marks={marks}
        onZoom={onZoom}
        lines={[["cpu", t("used"), 0]]}
        format={(value) => format.percent(value)}
        max={1}
      />
      <MetricChart
        title={t("memory")}
        metrics={data}
        marks={marks}
        onZoom={onZoom}
        lines={[["memory_used", t("used"), 4]]}
        binary
        format={format.bytes}
        max={node.host?.memory_total_bytes ?? undefined}
      />
      <MetricChart
        title={t("network")}
        metrics={data}
        marks={marks}
        onZoom={onZoom}
        lines={[
          ["network_receive", t("received"), 1],
          ["network_send", t("sent"), 2],
        ]}
        binary
        format={rate}
      />
      <MetricChart
        title={t("disk")}
        metrics={data}
        marks={marks}
        onZoom={onZoom}
        lines={[["disk_used", t("used"), 5]]}
        binary
        format={format.bytes}
        max={node.host?.disk_total_bytes ?? undefined}
      />
    </ChartGrid>
  );
}
