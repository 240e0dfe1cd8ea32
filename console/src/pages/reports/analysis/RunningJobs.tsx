/** The jobs that run on GPUs, the least used first, each of which can be resized or migrated after a preview. */
import { Anchor, Button, Group, Skeleton } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { Cpu } from "lucide-react";
import { useMemo, useState } from "react";

import { useAll } from "@/api/useAll";
import { movePlaces } from "@/pages/jobs/actions/changes";
import { MigrateDrawer } from "@/pages/jobs/actions/MigrateDrawer";
import type { Job } from "@/pages/jobs/actions/possible";
import { ResizeDrawer } from "@/pages/jobs/actions/ResizeDrawer";
import { actions } from "@/pages/jobs/actions/texts";
import { texts } from "@/pages/reports/analysis/texts";
import { DataTable, type Column } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

const RUNNING = { state: ["running"] };

export function RunningJobs() {
  const t = useTexts(texts);
  const { data, error, refetch } = useAll("/jobs", RUNNING);
  const [opened, setOpened] = useState<{ readonly job: Job; readonly what: "resize" | "migrate" }>();
  const jobs = useMemo(() => data?.filter((job) => job.gpus > 0), [data]);
  const close = () => setOpened(undefined);
  return (
    <Panel title={t("runningJobs")}>
      {error !== null ? (
        <ProblemNote error={error} onRetry={() => void refetch()} />
      ) : jobs === undefined ? (
        <Skeleton h={140} />
      ) : jobs.length === 0 ? (
        <EmptyState icon={Cpu} title={t("noRunningJobs")} hint={t("noRunningJobsHint")} />
      ) : (
        <Jobs jobs={jobs} onOpen={(job, what) => setOpened({ job, what })} />
      )}
      {opened?.what === "resize" && <ResizeDrawer job={opened.job} onClose={close} />}
      {opened?.what === "migrate" && <MigrateDrawer job={opened.job} onClose={close} />}
    </Panel>
  );
}

function Jobs({ jobs, onOpen }: { jobs: readonly Job[]; onOpen: (job: Job, what: "resize" | "migrate") => void }) {
  const t = useTexts(texts);
  const ta = useTexts(actions);
  const format = useFormat();
  const columns = useMemo<readonly Column<Job>[]>(
    () => [
      {
        key: "name",
        title: t("job"),
        sort: (job) => job.name,
        render: (job) => (
          <Anchor size="sm" renderRoot={(props) => <Link to={`/jobs/${job.id}`} {...props} />}>
            {job.name}
          </Anchor>
        ),
      },
      { key: "user", title: t("user"), sort: (job) => job.user, render: (job) => job.user },
      { key: "gpus", title: "GPU", numeric: true, sort: (job) => job.gpus, render: (job) => format.number(job.gpus) },
      {
        key: "place",
        title: t("place"),
        wide: true,
        render: (job) => (job.allocation ? movePlaces(job.allocation) : ""),
      },
      {
        key: "saved",
        title: t("lastSaved"),
        wide: true,
        sort: (job) => job.checkpointed_at ?? "",
        render: (job) => (job.checkpointed_at ? format.dateTime(job.checkpointed_at) : t("never")),
      },
      {
        key: "change",
        title: t("change"),
        render: (job) => (
          <Group gap="xs" wrap="nowrap">
            {job.elastic !== null && job.elastic !== undefined && (
              <Button size="compact-xs" variant="default" onClick={() => onOpen(job, "resize")}>
                {ta("resize")}
              </Button>
            )}
            <Button size="compact-xs" variant="default" onClick={() => onOpen(job, "migrate")}>
              {ta("migrate")}
            </Button>
          </Group>
        ),
      },
    ],
    [t, ta, format, onOpen],
  );
  return <DataTable label={t("runningJobs")} rows={jobs} columns={columns} rowKey={(job) => job.id} />;
}
