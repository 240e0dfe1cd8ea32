/** GPU-hours by user, group, queue or model: what was used of them, what was held without use, and what was not measured. */
import { SegmentedControl, SimpleGrid, Skeleton } from "@mantine/core";
import { ChartNoAxesCombined } from "lucide-react";
import { useMemo } from "react";

import type { Schema } from "@/api/client";
import { useFilters } from "@/app/useFilters";
import { Chart } from "@/charts/Chart";
import { texts } from "@/pages/reports/analysis/texts";
import { DataTable, type Column } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { Panel } from "@/parts/Panel";
import { SubjectLink } from "@/parts/SubjectLink";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

type Row = Schema<"GpuHoursView">;
type Usage = Schema<"UsageBreakdownView">;

const FILTERS = { by: "by_user" };
const GROUPINGS = ["by_user", "by_group", "by_queue", "by_model"] as const;
type Grouping = (typeof GROUPINGS)[number];
const SCOPE: Readonly<Record<Grouping, string>> = {
  by_user: "user",
  by_group: "group",
  by_queue: "queue",
  by_model: "model",
};
const MOST_BARS = 15;
/** Readable on the grounds of both themes. */
const FAINT = "#7f8aa0";

export function UsageBars({ usage }: { usage: Usage | undefined }) {
  const t = useTexts(texts);
  const [filters, setFilters] = useFilters(FILTERS);
  const by = GROUPINGS.find((one) => one === filters.by) ?? "by_user";
  const rows = usage?.[by];
  const choice = (
    <SegmentedControl
      size="xs"
      aria-label={t("groupedBy")}
      data={GROUPINGS.map((value) => ({ value, label: t(value) }))}
      value={by}
      onChange={(value) => setFilters({ by: value })}
    />
  );
  return (
    <Panel title={t("usage")} tools={choice}>
      {rows === undefined ? (
        <Skeleton h={260} />
      ) : rows.length === 0 ? (
        <EmptyState icon={ChartNoAxesCombined} title={t("noUsage")} hint={t("noUsageHint")} />
      ) : (
        <SimpleGrid cols={{ base: 1, lg: 2 }} spacing="lg">
          <Bars rows={rows} by={by} />
          <Figures rows={rows} by={by} />
        </SimpleGrid>
      )}
    </Panel>
  );
}

function Bars({ rows, by }: { rows: readonly Row[]; by: Grouping }) {
  const t = useTexts(texts);
  const format = useFormat();
  const most = useMemo(() => rows.slice(0, MOST_BARS).toReversed(), [rows]);
  const option = useMemo(() => {
    const part = (name: string, color: string, value: (row: Row) => number) => ({
      name,
      type: "bar" as const,
      stack: "hours",
      barMaxWidth: 22,
      itemStyle: { color },
      data: most.map((row) => Math.round(value(row) * 1000) / 1000),
    });
    return {
      grid: { left: 8, right: 24, top: 28, bottom: 4, containLabel: true },
      legend: { top: 0, left: 0, itemWidth: 12, itemHeight: 8, textStyle: { color: FAINT } },
      tooltip: {
        trigger: "axis" as const,
        axisPointer: { type: "shadow" as const },
        valueFormatter: (value: unknown) => `${format.number(Number(value))} h`,
      },
      xAxis: {
        type: "value" as const,
        splitLine: { lineStyle: { color: FAINT, opacity: 0.25 } },
        axisLabel: { formatter: "{value} h", color: FAINT },
      },
      yAxis: {
        type: "category" as const,
        data: most.map((row) => row.key || t("noKey")),
        axisTick: { show: false },
        axisLabel: { color: FAINT },
      },
      series: [
        part(t("busy"), "#20b8a6", (row) => row.busy_gpu_hours),
        part(t("unused"), "#f2a33c", (row) => Math.max(0, row.measured_gpu_hours - row.busy_gpu_hours)),
        part(t("unmeasured"), "#93a1b8", (row) => Math.max(0, row.gpu_hours - row.measured_gpu_hours)),
      ],
    };
  }, [most, t, format]);
  const figures = rows.slice(0, MOST_BARS).map((row) => `${row.key || t("noKey")} ${format.number(row.gpu_hours)}`);
  return (
    <Chart
      label={t("chartLabel", { by: t(by), figures: figures.join(", ") })}
      option={option}
      height={Math.max(160, most.length * 30 + 70)}
    />
  );
}

function Figures({ rows, by }: { rows: readonly Row[]; by: Grouping }) {
  const t = useTexts(texts);
  const format = useFormat();
  const columns = useMemo<Column<Row>[]>(
    () => [
      {
        key: "key",
        title: t("who"),
        sort: (row) => row.key,
        render: (row) => (row.key === "" ? t("noKey") : <SubjectLink scope={SCOPE[by]} name={row.key} />),
      },
      {
        key: "jobs",
        title: t("jobs"),
        numeric: true,
        wide: true,
        sort: (row) => row.jobs,
        render: (row) => format.number(row.jobs),
      },
      {
        key: "held",
        title: t("held"),
        numeric: true,
        sort: (row) => row.gpu_hours,
        render: (row) => `${format.number(row.gpu_hours)} h`,
      },
      {
        key: "idle",
        title: t("idleShort"),
        numeric: true,
        sort: (row) => row.idle_gpu_hours,
        render: (row) => `${format.number(row.idle_gpu_hours)} h`,
      },
      {
        key: "use",
        title: t("use"),
        numeric: true,
        sort: (row) => row.utilization,
        render: (row) => format.percent(row.utilization),
      },
      {
        key: "energy",
        title: t("energy"),
        numeric: true,
        wide: true,
        sort: (row) => row.energy_kwh,
        render: (row) => `${format.number(row.energy_kwh)} kWh`,
      },
    ],
    [t, format, by],
  );
  return (
    <DataTable
      label={`${t("usage")}: ${t(by)}`}
      rows={rows}
      columns={columns}
      rowKey={(row) => row.key}
      initialSort={{ key: "held", descending: true }}
    />
  );
}
