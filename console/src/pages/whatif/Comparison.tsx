/** Two runs side by side: in short, over time, how long jobs waited, every number, and who gets what. */
import { Alert, Badge, Group, SegmentedControl, SimpleGrid, Text } from "@mantine/core";
import { History, Minus, TrendingDown, TrendingUp } from "lucide-react";
import { useMemo } from "react";

import { useFilters } from "@/app/useFilters";
import { Chart } from "@/charts/Chart";
import { seriesColor } from "@/charts/colors";
import { LineChart } from "@/charts/LineChart";
import {
  cdfOf,
  changeText,
  LEAST_SECONDS,
  percentText,
  shownAs,
  usedOf,
  waitingOf,
  type Difference,
  type Result,
  type Share,
  type Simulation,
} from "@/pages/whatif/numbers";
import { fields, texts } from "@/pages/whatif/texts";
import { DataTable, Faint, type Column } from "@/parts/DataTable";
import { Panel } from "@/parts/Panel";
import { Stat } from "@/parts/Stat";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

/** Readable on the grounds of both themes. */
const FAINT = "#7f8aa0";
const [BASE, CANDIDATE] = [seriesColor(0), seriesColor(2)];

const HEADLINE = [
  ["waitMean", "wait_seconds.mean"],
  ["completionMean", "completion_seconds.mean"],
  ["utilization", "utilization"],
  ["preemptions", "preemptions"],
] as const;

export function Headline({ result }: { result: Result }) {
  const t = useTexts(texts);
  const format = useFormat();
  return (
    <SimpleGrid cols={{ base: 1, xs: 2, md: 4 }} spacing="sm">
      {HEADLINE.map(([text, field]) => {
        const found = result.differences.find((one) => one.field === field);
        return found === undefined ? null : (
          <Stat
            key={field}
            label={t(text)}
            value={shownAs(found.unit, found.candidate, format)}
            detail={t("fromTo", { from: shownAs(found.unit, found.base, format) })}
            chart={<Verdict difference={found} />}
          />
        );
      })}
    </SimpleGrid>
  );
}

/** By colour, shape and words. */
function Verdict({ difference }: { difference: Difference }) {
  const t = useTexts(texts);
  const { better, change, percent } = difference;
  const Icon = change === null || change === 0 ? Minus : change < 0 ? TrendingDown : TrendingUp;
  const color = better === null ? "gray" : better ? "teal" : "red";
  const text = percentText(percent);
  if (text === "" && better === null) return null;
  return (
    <Badge
      variant="light"
      color={color}
      tt="none"
      fw={500}
      leftSection={<Icon size={12} aria-hidden />}
      miw="max-content"
    >
      {[text, better === null ? "" : t(better ? "better" : "worse")].filter((one) => one !== "").join(" ")}
    </Badge>
  );
}

export function UsageHistory({ simulation, result }: { simulation: Simulation; result: Result }) {
  const t = useTexts(texts);
  const format = useFormat();
  const lines = useMemo(() => {
    const both = (of: typeof usedOf) => [
      { label: t("base"), color: BASE, points: of(result.base) },
      { label: t("candidate"), color: CANDIDATE, points: of(result.candidate) },
    ];
    return { use: both(usedOf), waiting: both(waitingOf) };
  }, [result, t]);
  const range = useMemo(
    () => [replayedSince(simulation) / 1000, lastOf(result, Date.parse(simulation.until) / 1000)] as const,
    [simulation, result],
  );
  return (
    <SimpleGrid cols={{ base: 1, lg: 2 }} spacing="sm">
      <Panel title={t("usageHistory")}>
        <LineChart
          label={t("usageHistory")}
          lines={lines.use}
          range={range}
          max={1}
          format={(value) => format.percent(value)}
          height={220}
        />
      </Panel>
      <Panel title={t("line")}>
        <LineChart
          label={t("line")}
          lines={lines.waiting}
          range={range}
          format={(value) => format.number(Math.round(value))}
          height={220}
        />
      </Panel>
    </SimpleGrid>
  );
}

/** The time before the history begins is not replayed: charts would be empty there. */
function replayedSince({ since, history_since }: Simulation): number {
  return Date.parse(history_since ?? since);
}

/** How much of the window there is to replay, if that is not all of it. */
export function Coverage({ simulation }: { simulation: Simulation }) {
  const t = useTexts(texts);
  const format = useFormat();
  if (simulation.history_since === null) return null;
  const until = Date.parse(simulation.until);
  const seconds = (since: number) => Math.round((until - since) / 1000);
  return (
    <Alert color="yellow" icon={<History size={18} aria-hidden />} title={t("shortHistory")}>
      {t("shortHistoryHint", {
        covered: format.duration(seconds(replayedSince(simulation))),
        asked: format.duration(seconds(Date.parse(simulation.since))),
        at: format.dayTime(simulation.history_since),
      })}
    </Alert>
  );
}

function lastOf(result: Result, until: number): number {
  const ends = [result.base, result.candidate].map((run) => Date.parse(run.course.times.at(-1) ?? "") / 1000);
  return Math.max(until, ...ends.filter((end) => Number.isFinite(end)));
}

export function WaitingCdf({ result }: { result: Result }) {
  const t = useTexts(texts);
  const format = useFormat();
  const option = useMemo(() => {
    const line = (name: string, color: string, points: ReturnType<typeof cdfOf>, dashed: boolean) => ({
      name,
      type: "line" as const,
      step: "end" as const,
      symbol: "none",
      lineStyle: { color, width: 2, ...(dashed ? { type: "dashed" as const } : {}) },
      itemStyle: { color },
      data: points.map(([seconds, part]) => [seconds, part]),
    });
    return {
      grid: { left: 8, right: 24, top: 34, bottom: 28, containLabel: true },
      legend: { top: 0, left: 0, itemWidth: 18, itemHeight: 8, textStyle: { color: FAINT } },
      tooltip: {
        trigger: "item" as const,
        formatter: (given: unknown) => {
          const [seconds, part] = (given as { value: [number, number] }).value;
          return t("cdfTip", { part: format.percent(part), time: format.duration(seconds) });
        },
      },
      xAxis: {
        type: "log" as const,
        // A second, a minute, an hour, two and a half days.
        logBase: 60,
        min: LEAST_SECONDS,
        name: t("cdfAxis"),
        nameLocation: "middle" as const,
        nameGap: 26,
        nameTextStyle: { color: FAINT },
        splitLine: { lineStyle: { color: FAINT, opacity: 0.25 } },
        axisLabel: { color: FAINT, formatter: (seconds: number) => format.duration(seconds), hideOverlap: true },
      },
      yAxis: {
        type: "value" as const,
        min: 0,
        max: 1,
        splitLine: { lineStyle: { color: FAINT, opacity: 0.25 } },
        axisLabel: { color: FAINT, formatter: (part: number) => format.percent(part) },
      },
      series: [
        line(t("base"), BASE, cdfOf(result.base), false),
        line(t("candidate"), CANDIDATE, cdfOf(result.candidate), true),
      ],
    };
  }, [result, t, format]);
  const [base, candidate] = [result.base.wait_seconds, result.candidate.wait_seconds];
  const label = t("cdfLabel", {
    base50: format.duration(base.p50),
    base90: format.duration(base.p90),
    new50: format.duration(candidate.p50),
    new90: format.duration(candidate.p90),
  });
  return (
    <Panel title={t("cdf")}>
      <Chart label={label} option={option} height={280} />
    </Panel>
  );
}

export function Numbers({ result }: { result: Result }) {
  const t = useTexts(texts);
  const tf = useTexts(fields);
  const format = useFormat();
  const columns = useMemo<readonly Column<Difference>[]>(
    () => [
      {
        key: "label",
        title: t("number"),
        render: (one) => (one.field in fields ? tf(one.field as keyof typeof fields) : one.label),
      },
      { key: "base", title: t("base"), numeric: true, render: (one) => shownAs(one.unit, one.base, format) },
      {
        key: "candidate",
        title: t("candidate"),
        numeric: true,
        render: (one) => shownAs(one.unit, one.candidate, format),
      },
      {
        key: "change",
        title: t("change"),
        numeric: true,
        wide: true,
        render: (one) => changeText(one.unit, one.change, format),
      },
      { key: "verdict", title: t("verdict"), numeric: true, render: (one) => <Verdict difference={one} /> },
    ],
    [t, tf, format],
  );
  return (
    <Panel title={t("numbers")}>
      <DataTable label={t("numbers")} rows={result.differences} columns={columns} rowKey={(one) => one.field} />
    </Panel>
  );
}

const SHARES = ["groups", "users", "queues", "sizes"] as const;
const FILTERS = { by: "groups" };

export function Shares({ result }: { result: Result }) {
  const t = useTexts(texts);
  const [filters, setFilters] = useFilters(FILTERS);
  const by = SHARES.find((one) => one === filters.by) ?? "groups";
  const columns = useShareColumns();
  return (
    <Panel
      title={t("shares")}
      tools={
        <SegmentedControl
          size="xs"
          aria-label={t("groupedBy")}
          data={SHARES.map((value) => ({ value, label: t(`by_${value}`) }))}
          value={by}
          onChange={(value) => setFilters({ by: value })}
        />
      }
    >
      <DataTable
        label={`${t("shares")}: ${t(`by_${by}`)}`}
        rows={result[by]}
        columns={columns}
        rowKey={(one) => one.name}
      />
    </Panel>
  );
}

function useShareColumns(): readonly Column<Share>[] {
  const t = useTexts(texts);
  const format = useFormat();
  return useMemo(() => {
    const pair = (key: keyof Share["base"], title: string, unit: Difference["unit"], wide = false): Column<Share> => ({
      key,
      title,
      numeric: true,
      wide,
      sort: (one) => one.candidate[key],
      render: (one) => <Pair base={one.base[key]} candidate={one.candidate[key]} unit={unit} />,
    });
    return [
      { key: "name", title: t("shares"), sort: (one) => one.name, render: (one) => one.name || t("noName") },
      {
        key: "jobs",
        title: t("jobs"),
        numeric: true,
        wide: true,
        sort: (one) => one.jobs,
        render: (one) => format.number(one.jobs),
      },
      pair("wait_mean_seconds", t("waitMean"), "seconds"),
      pair("wait_p90_seconds", t("p90"), "seconds", true),
      pair("completion_mean_seconds", t("completionMean"), "seconds", true),
      pair("gpu_hours", t("gpuHours"), "gpu_hours"),
      pair("preemptions", t("preemptions"), "jobs", true),
    ];
  }, [t, format]);
}

/** The later number, and what it was. */
function Pair({ base, candidate, unit }: { base: number | null; candidate: number | null; unit: Difference["unit"] }) {
  const t = useTexts(texts);
  const format = useFormat();
  return (
    <>
      {shownAs(unit, candidate, format)}
      <Faint>{t("fromTo", { from: shownAs(unit, base, format) })}</Faint>
    </>
  );
}

/** The assumptions behind the numbers. */
export function About({ simulation, result }: { simulation: Simulation; result: Result }) {
  const t = useTexts(texts);
  const format = useFormat();
  const lines = [
    t("aboutJobs", { n: format.number(result.jobs) }),
    simulation.source === "trace" ? t("aboutTrace") : "",
    result.carried_jobs > 0 ? t("aboutCarried", { n: format.number(result.carried_jobs) }) : "",
    result.estimated_jobs > 0 ? t("aboutEstimated", { n: format.number(result.estimated_jobs) }) : "",
    ...result.left_out.map((left) => t("aboutLeft", { n: format.number(left.jobs), reason: left.reason })),
    result.fidelity?.words ?? "",
    t("aboutTook", { time: format.duration(result.seconds) }),
  ];
  return (
    <Panel title={t("about")}>
      <Group gap={4}>
        {lines
          .filter((line) => line !== "")
          .map((line) => (
            <Text key={line} size="sm" c="dimmed">
              {line}
            </Text>
          ))}
      </Group>
    </Panel>
  );
}
