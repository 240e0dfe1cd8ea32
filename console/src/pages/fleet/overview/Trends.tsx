import { Title } from "@mantine/core";
import { memo, useMemo } from "react";

import type { Problem } from "@/api/problem";
import { ChartGrid } from "@/charts/ChartGrid";
import { seriesColor } from "@/charts/colors";
import { LineChart, type Line, type LineChartProps } from "@/charts/LineChart";
import { certain, useRange } from "@/charts/ranges";
import { useMarks } from "@/charts/useMarks";
import { pointsOf, seriesOf, type Metrics } from "@/charts/series";
import { texts } from "@/pages/fleet/overview/texts";
import { OfAll } from "@/parts/OfAll";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { useFormat } from "@/texts/format";
import { useTexts, type Say } from "@/texts/texts";

/** More lines than this cannot be distinguished. */
const MOST_QUEUES = 6;
const HEIGHT = 132;

/** Kept as it is while other parts of the page change: drawing six charts is not free. */
const Trends = memo(function Trends({
  data,
  error,
  onRetry,
}: {
  data: Metrics | undefined;
  error: Problem | null;
  onRetry: () => unknown;
}) {
  const t = useTexts(texts);
  const format = useFormat();
  const [range, setRange] = useRange();
  const marks = useMarks(range);
  const onZoom = (from: number, to: number) => setRange(certain(from, to));
  const lines = useMemo(() => (data === undefined ? undefined : linesOf(data, t)), [data, t]);
  if (error !== null && data === undefined) return <ProblemNote error={error} onRetry={() => void onRetry()} />;
  return (
    <Panel title={t("trends")} tools={<OfAll />}>
      <ChartGrid>
        <Trend
          marks={marks}
          onZoom={onZoom}
          title={t("use")}
          lines={lines?.use}
          format={(value) => format.percent(value)}
        />
        <Trend marks={marks} onZoom={onZoom} title={t("jobCount")} lines={lines?.jobs} format={format.number} />
        <Trend marks={marks} onZoom={onZoom} title={t("power")} lines={lines?.power} format={format.watts} />
        <Trend
          marks={marks}
          onZoom={onZoom}
          title={t("temperature")}
          lines={lines?.temperature}
          format={format.celsius}
        />
        <Trend marks={marks} onZoom={onZoom} title={t("queueLength")} lines={lines?.length} format={format.number} />
        <Trend marks={marks} onZoom={onZoom} title={t("waitTime")} lines={lines?.wait} format={format.duration} />
      </ChartGrid>
    </Panel>
  );
});

export default Trends;

function Trend({
  title,
  lines,
  format,
  marks,
  onZoom,
}: Pick<LineChartProps, "marks" | "onZoom"> & {
  title: string;
  lines: readonly Line[] | undefined;
  format: (value: number) => string;
}) {
  return (
    <div style={{ minWidth: 0 }}>
      <Title order={3} size="sm" fw={500} mb={4}>
        {title}
      </Title>
      <LineChart label={title} lines={lines} format={format} height={HEIGHT} marks={marks} onZoom={onZoom} />
    </div>
  );
}

function linesOf(data: Metrics, t: Say<typeof texts>) {
  const step = data.step_seconds;
  const line = (metric: string, label: string, color: number): Line => ({
    label,
    color: seriesColor(color),
    points: pointsOf(seriesOf(data, metric), step),
  });
  const perQueue = (metric: string): Line[] =>
    data.series
      .filter((one) => one.metric === metric)
      .sort((left, right) => last(right) - last(left))
      .slice(0, MOST_QUEUES)
      .map((one, at) => ({ label: one.subject, color: seriesColor(at), points: pointsOf(one, step) }));
  return {
    use: [heldPart(data, t("held")), line("utilization", t("used"), 1), line("allocation", t("askedFor"), 9)],
    jobs: [line("jobs_running", t("running"), 0), line("jobs_queued", t("queued"), 4)],
    power: [line("power", t("drawn"), 2)],
    temperature: [line("temperature", t("hottestGpu"), 3)],
    length: perQueue("queue_length"),
    wait: perQueue("queue_wait"),
  };
}

/** GPUs in use as a part of all there were at that time. */
function heldPart(data: Metrics, label: string): Line {
  const all = new Map(pointsOf(seriesOf(data, "gpus"), data.step_seconds));
  const points = pointsOf(seriesOf(data, "gpus_held"), data.step_seconds).map(([at, held]): [number, number | null] => {
    const gpus = all.get(at);
    return [at, held === null || gpus === null || gpus === undefined || gpus === 0 ? null : held / gpus];
  });
  return { label, color: seriesColor(0), points };
}

function last(series: Metrics["series"][number]): number {
  return series.points.at(-1)?.mean ?? 0;
}
