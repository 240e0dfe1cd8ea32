/** The GPU use of several jobs, each from the job's own start. */
import { useQueries } from "@tanstack/react-query";
import { useMemo } from "react";

import { api, sent } from "@/api/client";
import { seriesColor } from "@/charts/colors";
import { LineChart } from "@/charts/LineChart";
import type { Job } from "@/pages/jobs/actions/possible";
import { texts } from "@/pages/jobs/curves/texts";
import { linesOf } from "@/pages/jobs/job/readings";
import { Panel } from "@/parts/Panel";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

export function GpuUse({ jobs }: { jobs: readonly Job[] }) {
  const t = useTexts(texts);
  const format = useFormat();
  const results = useQueries({
    queries: jobs.map((job) => ({
      queryKey: ["get", "/jobs/{job}/metrics", { params: { path: { job: job.id }, query: { per_gpu: false } } }],
      queryFn: () =>
        sent(api.GET("/jobs/{job}/metrics", { params: { path: { job: job.id }, query: { per_gpu: false } } })),
      enabled: job.gpus > 0 && job.started_at !== null,
    })),
  });
  const key = results.map((result) => result.dataUpdatedAt).join(" ");
  const lines = useMemo(
    () =>
      jobs.flatMap((job, index) => {
        const data = results[index]?.data;
        const line = data === undefined ? undefined : linesOf(data, "utilization", job.id)[0];
        const first = line?.points[0]?.[0];
        if (line === undefined || first === undefined) return [];
        // Minutes since its own first reading, so that runs at different times lie on each other.
        const points = line.points.map(([at, value]) => [Math.round((at - first) / 6) / 10, value] as const);
        return [{ label: job.id, color: seriesColor(index), points }];
      }),
    // eslint-disable-next-line react-hooks/exhaustive-deps -- results are new objects with each drawing
    [jobs, key],
  );
  return (
    <Panel title={t("gpuUse")}>
      <LineChart
        label={t("gpuUse")}
        lines={lines}
        axis="step"
        format={(value) => format.percent(value)}
        min={0}
        max={1}
        height={200}
      />
    </Panel>
  );
}
