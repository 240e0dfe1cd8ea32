/** The use of the job's GPUs while it held them. */
import { SegmentedControl, SimpleGrid } from "@mantine/core";
import { CircuitBoard } from "lucide-react";
import { useMemo } from "react";

import { LineChart } from "@/charts/LineChart";
import { useFilters } from "@/app/useFilters";
import type { Job } from "@/pages/jobs/actions/possible";
import { linesOf, METRICS, shownAs, useReadings, type MetricName, type Metrics } from "@/pages/jobs/job/readings";
import { METRIC_TEXTS } from "@/pages/jobs/job/RunningPanel";
import { UsagePanel } from "@/pages/jobs/job/UsagePanel";
import { texts } from "@/pages/jobs/job/texts";
import { EmptyState } from "@/parts/EmptyState";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

const LOOK = { by: "together" } as const;

export function GpusTab({ job }: { job: Job }) {
  const t = useTexts(texts);
  const [look, setLook] = useFilters(LOOK);
  const { data, error, refetch } = useReadings(job.id, look.by === "gpu");
  if (job.gpus === 0) return <EmptyState icon={CircuitBoard} title={t("noGpuChart")} hint={t("noGpuHint")} />;
  if (error !== null && data === undefined) return <ProblemNote error={error} onRetry={() => void refetch()} />;
  return (
    <>
      <SegmentedControl
        size="xs"
        mb="sm"
        value={look.by}
        onChange={(by) => setLook({ by })}
        data={[
          { value: "together", label: t("together") },
          { value: "gpu", label: t("perGpu") },
        ]}
      />
      <SimpleGrid cols={{ base: 1, lg: 2 }} spacing="sm" mb="sm">
        {METRICS.map((metric) => (
          <MetricChart key={metric} metric={metric} data={data} />
        ))}
      </SimpleGrid>
      <UsagePanel job={job} />
    </>
  );
}

function MetricChart({ metric, data }: { metric: MetricName; data: Metrics | undefined }) {
  const t = useTexts(texts);
  const format = useFormat();
  const title = t(METRIC_TEXTS[metric]);
  const lines = useMemo(() => (data === undefined ? undefined : linesOf(data, metric, title)), [data, metric, title]);
  const range = useMemo(
    () => (data === undefined ? undefined : ([Date.parse(data.since) / 1000, Date.parse(data.until) / 1000] as const)),
    [data],
  );
  return (
    <Panel title={title}>
      <LineChart
        label={title}
        lines={lines}
        format={shownAs(metric, format)}
        min={0}
        max={metric === "utilization" ? 1 : undefined}
        range={range}
        height={190}
      />
    </Panel>
  );
}
