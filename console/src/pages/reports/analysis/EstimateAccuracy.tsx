/** How good the estimated starts were: how many came before them, by how far ahead they looked, and each one against what came. */
import { SimpleGrid, Skeleton, Stack, Text } from "@mantine/core";
import { Target } from "lucide-react";
import { useMemo } from "react";

import { $api } from "@/api/client";
import { Chart } from "@/charts/Chart";
import { OUTCOMES, outcomeOf, pointOf, type Accuracy, type Outcome } from "@/pages/reports/analysis/pastStarts";
import { texts } from "@/pages/reports/analysis/texts";
import { DataTable, type Column } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { Meter } from "@/parts/Meter";
import { useNow } from "@/parts/Moment";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { Stat } from "@/parts/Stat";
import { parseDuration } from "@/texts/durations";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

type Horizon = Accuracy["by_horizon"][number];

const HOUR_MS = 3_600_000;
const COLORS: Readonly<Record<Outcome, string>> = { early: "#20b8a6", between: "#f2a33c", late: "#e2557b" };
/** Readable on the grounds of both themes. */
const FAINT = "#7f8aa0";

export function EstimateAccuracy({ period }: { period: string }) {
  const t = useTexts(texts);
  const since = useSince(period);
  const { data, error, refetch } = $api.useQuery(
    "get",
    "/estimates/accuracy",
    { params: { query: { since } } },
    { placeholderData: (before) => before },
  );
  return (
    <Panel title={t("estimates")}>
      {error !== null ? (
        <ProblemNote error={error} onRetry={() => void refetch()} />
      ) : data === undefined ? (
        <Skeleton h={260} />
      ) : data.started === 0 ? (
        <EmptyState icon={Target} title={t("noEstimates")} hint={t("noEstimatesHint", { n: data.estimates })} />
      ) : (
        <Stack gap="md">
          <Text size="sm" c="dimmed">
            {t("estimatesHint")}
          </Text>
          <Figures accuracy={data} />
          <SimpleGrid cols={{ base: 1, lg: 2 }} spacing="lg">
            <SaidAndCame accuracy={data} />
            <Horizons horizons={data.by_horizon} />
          </SimpleGrid>
        </Stack>
      )}
    </Panel>
  );
}

/** The same text for an hour, so that it is not asked anew with every tick. */
function useSince(period: string): string {
  const hour = Math.floor(useNow() / HOUR_MS) * HOUR_MS;
  return new Date(hour - (parseDuration(period) ?? 0) * 1000).toISOString();
}

function Figures({ accuracy }: { accuracy: Accuracy }) {
  const t = useTexts(texts);
  const format = useFormat();
  return (
    <SimpleGrid cols={{ base: 2, md: 4 }}>
      <Stat
        label={t("startedOf")}
        value={format.number(accuracy.started)}
        detail={t("startedHint", { n: accuracy.estimates })}
      />
      <Stat label={t("beforeP50")} value={format.percent(accuracy.before_p50)} detail={t("beforeP50Hint")} />
      <Stat label={t("beforeP90")} value={format.percent(accuracy.before_p90)} detail={t("beforeP90Hint")} />
      <Stat
        label={t("medianError")}
        value={format.duration(accuracy.median_error_seconds)}
        detail={t("medianErrorHint")}
      />
    </SimpleGrid>
  );
}

function SaidAndCame({ accuracy }: { accuracy: Accuracy }) {
  const t = useTexts(texts);
  const format = useFormat();
  const { recent } = accuracy;
  const option = useMemo(() => {
    const most = Math.max(60, ...recent.flatMap((past) => [...pointOf(past)]));
    const axis = {
      type: "value" as const,
      max: most,
      nameLocation: "middle" as const,
      nameTextStyle: { color: FAINT },
      splitLine: { lineStyle: { color: FAINT, opacity: 0.25 } },
      axisLabel: { color: FAINT, formatter: (seconds: number) => format.duration(seconds), hideOverlap: true },
    };
    return {
      grid: { left: 24, right: 24, top: 34, bottom: 28, containLabel: true },
      legend: { top: 0, left: 0, itemWidth: 12, itemHeight: 8, textStyle: { color: FAINT } },
      tooltip: {
        trigger: "item" as const,
        formatter: (given: unknown) => {
          const [said, waited, job] = (given as { value: [number, number, string?] }).value;
          return job === undefined
            ? ""
            : t("pointText", { job, said: format.duration(said), waited: format.duration(waited) });
        },
      },
      xAxis: { ...axis, name: t("said"), nameGap: 26 },
      yAxis: { ...axis, name: t("came"), nameGap: 58 },
      series: [
        ...OUTCOMES.map((outcome) => ({
          name: t(`outcome_${outcome}`),
          type: "scatter" as const,
          symbolSize: 7,
          itemStyle: { color: COLORS[outcome], opacity: 0.75 },
          data: recent.filter((past) => outcomeOf(past) === outcome).map((past) => [...pointOf(past), past.job]),
        })),
        {
          name: t("exact"),
          type: "line" as const,
          symbol: "none",
          silent: true,
          lineStyle: { color: FAINT, type: "dashed" as const, width: 1 },
          itemStyle: { color: FAINT },
          data: [
            [0, 0],
            [most, most],
          ],
        },
      ],
    };
  }, [recent, t, format]);
  const figures = OUTCOMES.map(
    (outcome) => `${t(`outcome_${outcome}`)} ${recent.filter((past) => outcomeOf(past) === outcome).length}`,
  );
  return <Chart label={t("saidLabel", { figures: figures.join(", ") })} option={option} height={300} />;
}

function Horizons({ horizons }: { horizons: readonly Horizon[] }) {
  const t = useTexts(texts);
  const format = useFormat();
  const columns = useMemo<readonly Column<Horizon>[]>(() => {
    const share = (label: string, value: number | null) => (
      <Meter value={value} label={label} text={format.percent(value)} width={48} />
    );
    return [
      { key: "horizon", title: t("horizon"), render: (one) => one.horizon },
      { key: "started", title: t("startedOf"), numeric: true, render: (one) => format.number(one.started) },
      { key: "p50", title: t("beforeP50"), render: (one) => share(t("beforeP50"), one.before_p50) },
      { key: "p90", title: t("beforeP90"), render: (one) => share(t("beforeP90"), one.before_p90) },
      {
        key: "error",
        title: t("medianError"),
        numeric: true,
        wide: true,
        render: (one) => format.duration(one.median_error_seconds),
      },
    ];
  }, [t, format]);
  return <DataTable label={t("byHorizon")} rows={horizons} columns={columns} rowKey={(one) => one.horizon} />;
}
