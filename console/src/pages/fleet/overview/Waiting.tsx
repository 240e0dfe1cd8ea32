/** The jobs that are next, why each still waits, and when it is expected to start. */
import { Group, Skeleton, Text } from "@mantine/core";
import { useQueries } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { PartyPopper } from "lucide-react";
import { memo } from "react";

import { $api, type Schema } from "@/api/client";
import { useAll } from "@/api/useAll";
import { useCluster, useClusterSearch } from "@/app/cluster";
import classes from "@/pages/fleet/overview/Overview.module.css";
import { texts } from "@/pages/fleet/overview/texts";
import { mayRunOn } from "@/pages/scheduling/queue/order";
import { EmptyState } from "@/parts/EmptyState";
import { useNow } from "@/parts/Moment";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { startOf, type Start } from "@/parts/startOf";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

type Waiter = Schema<"OrderView">["lines"][number]["jobs"][number];

const QUEUES = 5;
const JOBS = 6;

export const Waiting = memo(function Waiting() {
  const t = useTexts(texts);
  const cluster = useCluster();
  const searchFor = useClusterSearch();
  const queues = useAll("/queues");
  const busy = queues.data?.filter((queue) => queue.queued > 0).sort((left, right) => right.queued - left.queued) ?? [];
  const orders = useQueries({
    queries: busy
      .slice(0, QUEUES)
      .map((queue) => $api.queryOptions("get", "/queues/{name}/order", { params: { path: { name: queue.name } } })),
  });
  const isLoading = queues.data === undefined || orders.some((order) => order.isPending);
  const next = isLoading
    ? undefined
    : firstOf(
        orders
          .flatMap((order) => order.data?.lines.flatMap((line) => line.jobs) ?? [])
          .filter((job) => mayRunOn(job, cluster)),
      );
  return (
    <Panel
      title={t("nextUp")}
      tools={
        <Link to="/queue" search={searchFor("/queue")} className={classes.link}>
          <Text size="xs">{t("allWaiting")}</Text>
        </Link>
      }
    >
      {queues.error !== null && <ProblemNote error={queues.error} onRetry={() => void queues.refetch()} />}
      {next === undefined && queues.error === null && <Skeleton h={160} />}
      {next?.length === 0 && <EmptyState icon={PartyPopper} title={t("nextUpEmpty")} hint={t("nextUpEmptyHint")} />}
      {next !== undefined && next.length > 0 && (
        <ol className={classes.list}>
          {next.map((job) => (
            <WaitingJob key={job.id ?? `${job.user}-${job.position}`} job={job} />
          ))}
        </ol>
      )}
    </Panel>
  );
});

/** Sorts jobs with an estimated start first, by that time; then the others by place in their own line. */
export function firstOf(jobs: readonly Waiter[]): readonly Waiter[] {
  const start = (job: Waiter) => {
    const known = startOf(job.planned_start, job.estimated_start);
    return known === undefined ? Infinity : Date.parse(known.at);
  };
  const compare = (left: Waiter, right: Waiter) =>
    start(left) === start(right) ? left.position - right.position : start(left) < start(right) ? -1 : 1;
  return [...jobs].sort(compare).slice(0, JOBS);
}

function WaitingJob({ job }: { job: Waiter }) {
  const t = useTexts(texts);
  return (
    <li className={classes.row}>
      <Group justify="space-between" wrap="nowrap" gap="xs">
        <Text size="sm" truncate>
          {job.id === null ? (
            t("someJob")
          ) : (
            <Link to={`/jobs/${job.id}`} className={classes.link}>
              {job.name}
            </Link>
          )}
        </Text>
        <Text size="sm" className="num">
          {job.gpus > 0 ? t("gpuCount", { n: job.gpus * job.nodes }) : t("noGpu")}
        </Text>
      </Group>
      <Group justify="space-between" wrap="nowrap" gap="xs">
        <Text size="xs" c="dimmed" truncate>
          {job.id === null ? job.user : `${job.id} · ${job.user}`}
        </Text>
        <StartTime start={startOf(job.planned_start, job.estimated_start)} />
      </Group>
      {job.id === null ? <Reason text={job.detail} /> : <Why job={job.id} instead={job.detail} />}
    </li>
  );
}

/** The reason that holds the job, if the server shows it to this user; else the reason for its place in the line. */
function Why({ job, instead }: { job: string; instead: string }) {
  const { data } = $api.useQuery("get", "/jobs/{job}/why", { params: { path: { job } } }, { retry: false });
  return <Reason text={data?.summary ?? instead} />;
}

function Reason({ text }: { text: string }) {
  return (
    <Text size="xs" c="dimmed" lineClamp={2} title={text}>
      {text}
    </Text>
  );
}

/** A planned start is a bound; an estimated one is not. */
function StartTime({ start }: { start: Start | undefined }) {
  const t = useTexts(texts);
  const format = useFormat();
  const now = useNow();
  if (start === undefined)
    return (
      <Text size="xs" c="dimmed" style={{ flexShrink: 0 }}>
        {t("notPlanned")}
      </Text>
    );
  const isDue = Date.parse(start.at) <= Math.max(now, Date.now() - 10_000);
  return (
    <Text size="xs" className="num" title={format.dateTime(start.at)} style={{ flexShrink: 0 }}>
      {isDue ? t("soon") : t(start.isBound ? "planned" : "about", { ago: format.ago(start.at) })}
    </Text>
  );
}
