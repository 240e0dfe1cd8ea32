/** The head of a job's page: its name, state and size in a line, and what can be done with it. */
import { Button, Group, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { Copy, Ellipsis } from "lucide-react";
import { useState } from "react";

import { EditDrawer } from "@/pages/jobs/actions/EditDrawer";
import { ExplainedButton } from "@/parts/ExplainedButton";
import { ICONS, JobMenu } from "@/pages/jobs/actions/JobMenu";
import { isActive, type ActionName, type Job } from "@/pages/jobs/actions/possible";
import { MigrateDrawer } from "@/pages/jobs/actions/MigrateDrawer";
import { ResizeDrawer } from "@/pages/jobs/actions/ResizeDrawer";
import { useJobActions, type QuickAction } from "@/pages/jobs/actions/useJobActions";
import { useObstacle } from "@/pages/jobs/actions/useObstacle";
import { actions, texts as actionTexts } from "@/pages/jobs/actions/texts";
import { useSize } from "@/pages/jobs/job/useSize";
import { PageHeader } from "@/parts/PageHeader";
import { StateBadge } from "@/parts/StateBadge";
import { kinds } from "@/texts/common";
import { useTexts } from "@/texts/texts";

export function JobHead({ job }: { job: Job }) {
  const ta = useTexts(actions);
  const tw = useTexts(actionTexts);
  const [open, setOpen] = useState<"edit" | "resize" | "migrate">();
  const main: QuickAction[] = [
    isActive(job) || job.state === "created" ? "stop" : "start",
    ...(job.state === "created" ? (["start"] as const) : []),
  ];
  const shown: ActionName[] = [...main, "clone"];
  return (
    <>
      <PageHeader title={job.name} detail={<Line job={job} />}>
        {main.map((name) => (
          <QuickButton key={name} name={name} job={job} />
        ))}
        <CloneButton job={job} />
        <JobMenu
          job={job}
          without={shown}
          onEdit={() => setOpen("edit")}
          onResize={() => setOpen("resize")}
          onMigrate={() => setOpen("migrate")}
          target={
            <Button variant="default" px={8} aria-label={tw("more")} title={tw("more")}>
              <Ellipsis size={16} aria-hidden />
            </Button>
          }
        />
      </PageHeader>
      {open === "edit" && <EditDrawer job={job} title={ta("edit")} onClose={() => setOpen(undefined)} />}
      {open === "resize" && <ResizeDrawer job={job} onClose={() => setOpen(undefined)} />}
      {open === "migrate" && <MigrateDrawer job={job} onClose={() => setOpen(undefined)} />}
    </>
  );
}

function Line({ job }: { job: Job }) {
  const tk = useTexts(kinds);
  const size = useSize();
  return (
    <Group gap={8}>
      <StateBadge state={job.state} />
      <Text size="sm" c="dimmed" component="span">
        {[job.id, job.user, tk(job.kind), size(job), job.queue].join(" · ")}
      </Text>
    </Group>
  );
}

function QuickButton({ name, job }: { name: QuickAction; job: Job }) {
  const t = useTexts(actions);
  const act = useJobActions();
  const why = useObstacle()(name, job);
  const Icon = ICONS[name];
  return (
    <ExplainedButton
      variant={name === "stop" ? "light" : "filled"}
      color={name === "stop" ? "red" : "blue"}
      leftSection={<Icon size={14} />}
      why={why}
      onClick={() => act(name, job)}
    >
      {t(name)}
    </ExplainedButton>
  );
}

function CloneButton({ job }: { job: Job }) {
  const t = useTexts(actions);
  const why = useObstacle()("clone", job);
  if (why !== undefined) {
    return (
      <ExplainedButton variant="default" leftSection={<Copy size={14} />} why={why} onClick={() => undefined}>
        {t("clone")}
      </ExplainedButton>
    );
  }
  return (
    <Button
      variant="default"
      leftSection={<Copy size={14} />}
      renderRoot={(props) => <Link to="/jobs/new" search={{ clone: job.id }} {...props} />}
    >
      {t("clone")}
    </Button>
  );
}
