/** The jobs that are next, why each still waits, and when it is expected to start. */
import { Group, Skeleton, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { PartyPopper } from "lucide-react";
import { memo } from "react";

import { $api, type Schema } from "@/api/client";
import { useCluster, useClusterSearch } from "@/app/cluster";
import classes from "@/pages/fleet/overview/Overview.module.css";
import { texts } from "@/pages/fleet/overview/texts";
import { useReasons } from "@/pages/jobs/why/reasons";
import { EmptyState } from "@/parts/EmptyState";
import { useNow } from "@/parts/Moment";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { startOf, type Start } from "@/parts/startOf";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

type Waiter = Schema<"NextJobView">;

const JOBS = 6;

export default memo(function Waiting() {
  const t = useTexts(texts);
  const cluster = useCluster();
  const searchFor = useClusterSearch();
  const query = { limit: JOBS, ...(cluster !== "" && { cluster }) };
  const { data, error, refetch } = $api.useQuery("get", "/queues:next", { params: { query } });
  const next = data?.items;
  return (
    <Panel
      title={t("nextUp")}
      tools={
        <Link to="/queue" search={searchFor("/queue")} className={classes.link}>
          <Text size="xs">{t("allWaiting")}</Text>
        </Link>
      }
    >
      {error !== null && <ProblemNote error={error} onRetry={() => void refetch()} />}
      {next === undefined && error === null && <Skeleton h={160} />}
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

function WaitingJob({ job }: { job: Waiter }) {
  const t = useTexts(texts);
  const { sentence } = useReasons();
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
      <Reason text={job.reason === null ? job.detail : sentence(job.reason)} />
    </li>
  );
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
