/** Two to five jobs side by side: what they were submitted with, what they used, and the curves of their programs. */
import { Button, Skeleton, Stack, Switch, Table, Text } from "@mantine/core";
import { useQueries } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { GitCompare } from "lucide-react";
import { useMemo, useState, type ReactNode } from "react";

import { api, sent } from "@/api/client";
import type { Problem } from "@/api/problem";
import { useFilters } from "@/app/useFilters";
import { seriesColor } from "@/charts/colors";
import type { Job } from "@/pages/jobs/actions/possible";
import { fieldRows, idsOf, LEAST_JOBS, timesOf } from "@/pages/jobs/compare/compare";
import { GpuUse } from "@/pages/jobs/compare/GpuUse";
import { CurveCharts } from "@/pages/jobs/curves/CurveCharts";
import { texts } from "@/pages/jobs/curves/texts";
import { useCurves } from "@/pages/jobs/curves/useCurves";
import { BackLink } from "@/parts/BackLink";
import { EmptyState } from "@/parts/EmptyState";
import { Moment, useNow } from "@/parts/Moment";
import { PageHeader } from "@/parts/PageHeader";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { StateBadge } from "@/parts/StateBadge";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

const CHOSEN = { job: [] as string[] };

export default function ComparePage() {
  const t = useTexts(texts);
  const [chosen] = useFilters(CHOSEN);
  const ids = useMemo(() => idsOf(chosen.job), [chosen.job]);
  const { jobs, error, retry } = useJobs(ids);
  return (
    <>
      <BackLink to="/jobs">{t("toJobs")}</BackLink>
      <PageHeader title={t("compare")} detail={t("compareDetail", { n: ids.length })} />
      {ids.length < LEAST_JOBS ? (
        <EmptyState icon={GitCompare} title={t("few")} hint={t("fewHint")}>
          <Button renderRoot={(props) => <Link to="/jobs" {...props} />}>{t("toJobs")}</Button>
        </EmptyState>
      ) : error !== null ? (
        <ProblemNote error={error} onRetry={retry} />
      ) : jobs === undefined ? (
        <Skeleton h={320} />
      ) : (
        <Stack gap="sm">
          <Times jobs={jobs} />
          <Differences jobs={jobs} />
          <Curves jobs={jobs} />
          {jobs.some((job) => job.gpus > 0) && <GpuUse jobs={jobs} />}
        </Stack>
      )}
    </>
  );
}

function useJobs(ids: readonly string[]) {
  const results = useQueries({
    queries: ids.map((job) => ({
      queryKey: ["get", "/jobs/{job}", { params: { path: { job } } }],
      queryFn: () => sent(api.GET("/jobs/{job}", { params: { path: { job } } })),
    })),
  });
  const found = results.flatMap((result) => (result.data === undefined ? [] : [result.data]));
  const failed = results.find((result) => result.error !== null && result.data === undefined);
  return {
    jobs: found.length === ids.length ? found : undefined,
    error: (failed?.error as Problem | undefined) ?? null,
    retry: () => results.forEach((result) => void result.refetch()),
  };
}

function Curves({ jobs }: { jobs: readonly Job[] }) {
  const t = useTexts(texts);
  const { jobs: curves, isComplete, error, retry } = useCurves(jobs);
  return (
    <Panel title={t("curves")}>
      {error !== null ? (
        <ProblemNote error={error} onRetry={retry} />
      ) : curves === undefined ? (
        <Skeleton h={200} />
      ) : (
        <CurveCharts jobs={curves} isComplete={isComplete} />
      )}
    </Panel>
  );
}

/** A table with a column for each job; the colour is that of the job's lines. */
function JobTable({ label, jobs, children }: { label: string; jobs: readonly Job[]; children: ReactNode }) {
  const t = useTexts(texts);
  return (
    <Table.ScrollContainer minWidth={180 + 160 * jobs.length}>
      <Table aria-label={label} layout="fixed" verticalSpacing={4}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th w={160}>{t("field")}</Table.Th>
            {jobs.map((job, index) => (
              <Table.Th key={job.id}>
                <Link to="/jobs/$job" params={{ job: job.id }} style={{ color: "inherit" }}>
                  <span
                    aria-hidden
                    style={{
                      display: "inline-block",
                      width: 10,
                      height: 10,
                      borderRadius: 2,
                      marginInlineEnd: 6,
                      background: seriesColor(index),
                    }}
                  />
                  {job.name}
                </Link>
                <Text size="xs" c="dimmed">
                  {job.id} · {job.user}
                </Text>
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>{children}</Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}

function Line({ name, values, strong = false }: { name: string; values: readonly ReactNode[]; strong?: boolean }) {
  return (
    <Table.Tr>
      <Table.Th scope="row" fw={500} c="dimmed">
        {name}
      </Table.Th>
      {values.map((value, index) => (
        <Table.Td key={index} fw={strong ? 600 : 400} style={{ overflowWrap: "anywhere" }}>
          {value === "" || value === null || value === undefined ? "–" : value}
        </Table.Td>
      ))}
    </Table.Tr>
  );
}

function Times({ jobs }: { jobs: readonly Job[] }) {
  const t = useTexts(texts);
  const format = useFormat();
  const now = useNow();
  const of = (read: (job: Job) => ReactNode) => jobs.map(read);
  const number = (value: number | null | undefined) =>
    value === null || value === undefined ? "–" : format.number(value);
  return (
    <Panel title={t("times")}>
      <JobTable label={t("times")} jobs={jobs}>
        <Line
          name={t("state")}
          values={of((job) => (
            <StateBadge state={job.state} />
          ))}
        />
        <Line name={t("waited")} values={of((job) => format.duration(timesOf(job, now).waited))} />
        <Line name={t("ran")} values={of((job) => format.duration(timesOf(job, now).ran))} />
        <Line name={t("attempts")} values={of((job) => job.attempt)} />
        <Line name={t("gpuHours")} values={of((job) => number(job.usage?.gpu_hours))} />
        <Line name={t("idleHours")} values={of((job) => number(job.usage?.idle_gpu_hours))} />
        <Line name={t("use")} values={of((job) => format.percent(job.usage?.utilization))} />
        <Line name={t("peak")} values={of((job) => format.bytes(job.usage?.memory_peak_bytes))} />
        <Line name={t("energy")} values={of((job) => number(job.usage?.energy_kwh))} />
        <Line
          name={t("checkpoint")}
          values={of((job) => (
            <Moment at={job.checkpointed_at} />
          ))}
        />
        <Line name={t("exit")} values={of((job) => job.exit_code)} />
      </JobTable>
    </Panel>
  );
}

function Differences({ jobs }: { jobs: readonly Job[] }) {
  const t = useTexts(texts);
  const [isAll, setAll] = useState(false);
  const rows = useMemo(() => fieldRows(jobs), [jobs]);
  const shown = isAll ? rows : rows.filter((row) => row.differs);
  return (
    <Panel
      title={t("differences")}
      tools={
        <Switch
          size="xs"
          label={t("allFields")}
          checked={isAll}
          onChange={(event) => setAll(event.currentTarget.checked)}
        />
      }
    >
      {shown.length === 0 ? (
        <Text size="sm" c="dimmed">
          {t("same")}
        </Text>
      ) : (
        <JobTable label={t("differences")} jobs={jobs}>
          {shown.map((row) => (
            <Line key={row.field} name={row.field} values={row.values} strong={isAll && row.differs} />
          ))}
        </JobTable>
      )}
    </Panel>
  );
}
