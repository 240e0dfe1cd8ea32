/** The scores behind the fair-share order: of all users, and the history of one user. */
import { Alert, Grid, SegmentedControl, Stack } from "@mantine/core";
import { Info, Scale } from "lucide-react";
import { useMemo } from "react";

import { $api, type Schema } from "@/api/client";
import { useOrderingPolicy } from "@/api/options";
import { useAll } from "@/api/useAll";
import { useMe } from "@/app/session";
import { useFilters } from "@/app/useFilters";
import { seriesColor } from "@/charts/colors";
import { LineChart, type Line } from "@/charts/LineChart";
import { texts } from "@/pages/scheduling/queue/texts";
import { DataTable, type Column } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { common } from "@/texts/common";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

type Score = Schema<"ScoreView">;
type Point = Schema<"ScorePointView">;

const DEFAULTS = { user: "", span: "24h" } as const;
const SPANS: Readonly<Record<string, number>> = { "6h": 6, "24h": 24, "7d": 168, "30d": 720 };
/** Scores of any size with as many digits as tell them apart. */
export function scoreText(score: number): string {
  return score >= 1 || score === 0 ? score.toFixed(2) : score.toPrecision(3);
}

export function ScoresTab({ queue }: { queue: Schema<"QueueView"> | undefined }) {
  const t = useTexts(texts);
  const me = useMe();
  const [filters, setFilters] = useFilters(DEFAULTS);
  const { data: scores, error, refetch } = useAll("/scores");
  const columns = useScoreColumns();
  const user = filters.user || usualUser(scores, me.name);
  const usesScore = useOrderingPolicy(queue?.policy)?.uses_score === true;
  return (
    <Stack gap="md">
      <Alert variant="default" color="blue" icon={<Info size={18} />} title={t("scoreTitle")}>
        {t("scoreText")} {queue !== undefined && t(usesScore ? "scoreUsed" : "scoreUnused", { name: queue.name })}
      </Alert>
      <Grid gap="md">
        <Grid.Col span={{ base: 12, lg: 5 }}>
          <Panel title={t("everybody")}>
            {error !== null && scores === undefined ? (
              <ProblemNote error={error} onRetry={() => void refetch()} />
            ) : (
              <DataTable
                label={t("everybody")}
                rows={scores}
                columns={columns}
                rowKey={(score) => `${score.user} ${score.model}`}
                onOpen={(score) => setFilters({ user: score.user })}
                initialSort={{ key: "score", descending: true }}
                empty={<EmptyState icon={Scale} title={t("noScores")} hint={t("noScoresHint")} />}
              />
            )}
          </Panel>
        </Grid.Col>
        <Grid.Col span={{ base: 12, lg: 7 }}>
          <History
            user={user}
            span={filters.span in SPANS ? filters.span : DEFAULTS.span}
            onSpan={(span) => setFilters({ span })}
          />
        </Grid.Col>
      </Grid>
    </Stack>
  );
}

/** Oneself, or who has the highest score while oneself has none. */
function usualUser(scores: readonly Score[] | undefined, me: string): string {
  if (scores === undefined || scores.length === 0 || scores.some((score) => score.user === me)) return me;
  return scores.reduce((highest, score) => (score.score > highest.score ? score : highest)).user;
}

function useScoreColumns(): readonly Column<Score>[] {
  const t = useTexts(texts);
  const c = useTexts(common);
  const format = useFormat();
  return useMemo(
    () => [
      { key: "user", title: c("user"), render: (score) => score.user, sort: (score) => score.user },
      { key: "model", title: c("model"), render: (score) => score.model, sort: (score) => score.model },
      {
        key: "usage",
        title: t("usage"),
        numeric: true,
        render: (score) => format.number(score.usage),
        sort: (score) => score.usage,
      },
      {
        key: "score",
        title: t("score"),
        numeric: true,
        render: (score) => scoreText(score.score),
        sort: (score) => score.score,
      },
    ],
    [t, c, format],
  );
}

function History({ user, span, onSpan }: { user: string; span: string; onSpan: (span: string) => void }) {
  const t = useTexts(texts);
  const format = useFormat();
  const hours = SPANS[span] ?? 24;
  // To the minute: the same question while one looks, so that its answer is kept.
  const since = useMemo(
    () => new Date(Math.floor(Date.now() / 60_000) * 60_000 - hours * 3_600_000).toISOString(),
    [hours],
  );
  const { data, error, refetch } = $api.useQuery("get", "/scores/{user}", {
    params: { path: { user }, query: { since, points: 300 } },
  });
  const scores = useMemo(() => (data === undefined ? undefined : linesOf(data.items, (point) => point.score)), [data]);
  const usage = useMemo(() => (data === undefined ? undefined : linesOf(data.items, (point) => point.usage)), [data]);
  const spanText = hours <= 24 ? t("hours", { n: hours }) : t("days", { n: hours / 24 });
  return (
    <Panel
      title={t("historyOf", { user })}
      tools={
        <SegmentedControl size="xs" aria-label={t("span")} data={Object.keys(SPANS)} value={span} onChange={onSpan} />
      }
    >
      {error !== null && data === undefined ? (
        <ProblemNote error={error} onRetry={() => void refetch()} />
      ) : data?.items.length === 0 ? (
        <EmptyState icon={Scale} title={t("noScores")} hint={t("noScoresHint")} />
      ) : (
        <Stack gap="lg">
          <LineChart
            label={t("historyLabel", { user, span: spanText })}
            lines={scores}
            format={scoreText}
            height={220}
          />
          <LineChart
            label={t("usageLabel", { user, span: spanText })}
            lines={usage}
            format={(value) => `${format.number(value)} GPU`}
            height={160}
          />
        </Stack>
      )}
    </Panel>
  );
}

function linesOf(points: readonly Point[], value: (point: Point) => number): Line[] {
  const models = [...new Set(points.map((point) => point.model))].sort();
  return models.map((model, index) => ({
    label: model,
    color: seriesColor(index),
    points: points
      .filter((point) => point.model === model)
      .map((point) => [new Date(point.at).getTime() / 1000, value(point)] as const),
  }));
}
