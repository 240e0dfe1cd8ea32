/** One job: what it is, what it does or waits for, and everything that can be done with it. */
import { Skeleton, Stack } from "@mantine/core";
import { useParams } from "@tanstack/react-router";
import {
  AppWindow,
  ChartLine,
  ChartSpline,
  CircuitBoard,
  FileCode2,
  FolderOpen,
  LayoutDashboard,
  ListTree,
  Save,
  ScrollText,
} from "lucide-react";

import { $api, type Schema } from "@/api/client";
import { CheckpointsTab } from "@/pages/jobs/job/tabs/CheckpointsTab";
import { CurvesTab } from "@/pages/jobs/job/tabs/CurvesTab";
import { EventsTab } from "@/pages/jobs/job/tabs/EventsTab";
import { FilesTab } from "@/pages/jobs/job/tabs/FilesTab";
import { GpusTab } from "@/pages/jobs/job/tabs/GpusTab";
import { JobHead } from "@/pages/jobs/job/JobHead";
import { ReportTab } from "@/pages/jobs/job/tabs/ReportTab";
import { SummaryTab } from "@/pages/jobs/job/tabs/SummaryTab";
import { texts } from "@/pages/jobs/job/texts";
import { LogsTab } from "@/pages/jobs/logs/LogsTab";
import { SpecTab } from "@/pages/jobs/spec/SpecTab";
import { AppTab } from "@/pages/workbenches/apps/AppTab";
import { BackLink } from "@/parts/BackLink";
import { PageHeader } from "@/parts/PageHeader";
import { PageTabs } from "@/parts/PageTabs";
import { ProblemNote } from "@/parts/ProblemNote";
import { useTexts } from "@/texts/texts";

/** The interval of requests for the disk use of a running job, which changes without an event. */
const LOOK_AGAIN_MS = 15_000;

export default function JobPage() {
  const t = useTexts(texts);
  const { job: id = "" } = useParams({ strict: false });
  const {
    data: job,
    error,
    refetch,
  } = $api.useQuery(
    "get",
    "/jobs/{job}",
    { params: { path: { job: id } } },
    { refetchInterval: ({ state }) => (state.data?.state === "running" ? LOOK_AGAIN_MS : false) },
  );
  if (job === undefined) {
    return (
      <>
        <BackLink to="/jobs">{t("allJobs")}</BackLink>
        <PageHeader title={id} />
        {error === null ? <Loading /> : <ProblemNote error={error} onRetry={() => void refetch()} />}
      </>
    );
  }
  return (
    <>
      <BackLink to="/jobs">{t("allJobs")}</BackLink>
      <JobHead job={job} />
      <PageTabs
        label={t("sections")}
        tabs={[
          { key: "summary", title: t("summary"), icon: LayoutDashboard, content: () => <SummaryTab job={job} /> },
          ...(job.kind === "preset"
            ? [{ key: "report", title: t("report"), icon: ChartLine, content: () => <ReportTab job={job} /> }]
            : []),
          ...(hasApp(job)
            ? [{ key: "app", title: t("app"), icon: AppWindow, content: () => <AppTab job={job} /> }]
            : []),
          { key: "logs", title: t("logs"), icon: ScrollText, content: () => <LogsTab job={job} /> },
          { key: "curves", title: t("curves"), icon: ChartSpline, content: () => <CurvesTab job={job} /> },
          { key: "gpus", title: t("gpus"), icon: CircuitBoard, content: () => <GpusTab job={job} /> },
          { key: "files", title: t("files"), icon: FolderOpen, content: () => <FilesTab job={job} /> },
          { key: "checkpoints", title: t("checkpoints"), icon: Save, content: () => <CheckpointsTab job={job} /> },
          { key: "events", title: t("events"), icon: ListTree, content: () => <EventsTab job={job} /> },
          { key: "spec", title: t("spec"), icon: FileCode2, content: () => <SpecTab job={job} /> },
        ]}
      />
    </>
  );
}

function hasApp(job: Schema<"JobView">): boolean {
  return (job.app ?? null) !== null || (job.app_port ?? null) !== null;
}

function Loading() {
  return (
    <Stack>
      <Skeleton h={36} />
      <Skeleton h={220} />
      <Skeleton h={140} />
    </Stack>
  );
}
