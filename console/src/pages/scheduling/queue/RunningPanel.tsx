/** The jobs that hold the queue's GPUs, and their latest ends. */
import { ActionIcon, Button, Group, Menu, Text } from "@mantine/core";
import { CircleStop, EllipsisVertical, Play } from "lucide-react";
import { useMemo } from "react";

import type { Schema } from "@/api/client";
import { usePages } from "@/api/useAll";
import { useCluster } from "@/app/cluster";
import { useIsOperator, useMe } from "@/app/session";
import { Size } from "@/pages/scheduling/queue/PlaceRow";
import type { QueueActions } from "@/pages/scheduling/queue/useQueueActions";
import { texts } from "@/pages/scheduling/queue/texts";
import { DataTable, Faint, type Column } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { Moment } from "@/parts/Moment";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { StateBadge } from "@/parts/StateBadge";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

type Job = Schema<"JobView">;
type Queue = Schema<"QueueView">;

const HOLDING = ["starting", "running", "stopping"];

export function RunningPanel({ queue, onlyMine, actions }: { queue: Queue; onlyMine: boolean; actions: QueueActions }) {
  const t = useTexts(texts);
  const me = useMe();
  const cluster = useCluster();
  const jobs = usePages("/jobs", {
    queue: queue.name,
    state: HOLDING,
    sort: "id",
    user: onlyMine ? me.name : undefined,
    cluster: cluster || undefined,
  });
  const columns = useRunningColumns();
  const unseen = onlyMine || cluster !== "" || jobs.hasMore ? 0 : queue.running - (jobs.items?.length ?? queue.running);
  return (
    <Panel title={t("runningNow")}>
      {jobs.error !== null && jobs.items === undefined ? (
        <ProblemNote error={jobs.error} onRetry={jobs.retry} />
      ) : (
        <DataTable
          label={t("runningNow")}
          rows={jobs.items}
          columns={columns}
          rowKey={(job) => job.id}
          href={(job) => `/jobs/${job.id}`}
          actions={(job) => <RunningMenu job={job} actions={actions} />}
          empty={
            unseen > 0 ? <span /> : <EmptyState icon={Play} title={t("noneRunning")} hint={t("noneRunningHint")} />
          }
          foot={
            jobs.hasMore && (
              <Button variant="default" mt="xs" loading={jobs.isLoadingMore} onClick={jobs.loadMore}>
                {t("moreRunning")}
              </Button>
            )
          }
        />
      )}
      {unseen > 0 && (
        <Text size="sm" c="dimmed" mt="xs">
          {t("othersRun", { n: unseen })}
        </Text>
      )}
    </Panel>
  );
}

function useRunningColumns(): readonly Column<Job>[] {
  const t = useTexts(texts);
  const c = useTexts(common);
  return useMemo(
    () => [
      {
        key: "job",
        title: t("job"),
        render: (job) => (
          <>
            {job.name}
            <Faint>
              {job.id} · {job.user}
            </Faint>
          </>
        ),
        sort: (job) => job.name,
      },
      { key: "state", title: c("state"), render: (job) => <StateBadge state={job.state} />, wide: true },
      {
        key: "size",
        title: t("size"),
        numeric: true,
        render: (job) => <Size place={job} />,
        sort: (job) => job.gpus * job.nodes,
      },
      {
        key: "started",
        title: t("started"),
        numeric: true,
        wide: true,
        render: (job) => <Moment at={job.started_at} />,
        sort: (job) => job.started_at,
      },
      { key: "ends", title: t("ends"), numeric: true, render: (job) => <End job={job} />, sort: (job) => endOf(job) },
    ],
    [t, c],
  );
}

function endOf(job: Job): string | null {
  if (job.started_at === null || job.time_limit_seconds === null) return null;
  return new Date(new Date(job.started_at).getTime() + job.time_limit_seconds * 1000).toISOString();
}

function End({ job }: { job: Job }) {
  const t = useTexts(texts);
  const end = endOf(job);
  if (end !== null) return <Moment at={end} />;
  return job.time_limit_seconds === null ? (
    <Text size="xs" c="dimmed" span>
      {t("endsOpen")}
    </Text>
  ) : (
    <>–</>
  );
}

function RunningMenu({ job, actions }: { job: Job; actions: QueueActions }) {
  const t = useTexts(texts);
  const me = useMe();
  const isOperator = useIsOperator();
  if (job.user !== me.name && !isOperator) return null;
  return (
    <Group gap={0}>
      <Menu position="bottom-end">
        <Menu.Target>
          <ActionIcon variant="subtle" color="gray" aria-label={t("menuOf", { name: job.name })}>
            <EllipsisVertical size={16} aria-hidden />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item
            color="red"
            leftSection={<CircleStop size={14} />}
            disabled={job.state === "stopping"}
            onClick={() => actions.stop([job])}
          >
            {t("stop")}
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
    </Group>
  );
}
