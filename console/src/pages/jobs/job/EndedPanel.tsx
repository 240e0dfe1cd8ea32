/** For a job that has ended: why, what its program said last, and what to do now. */
import { Button, Code, Group, Stack, Text, ThemeIcon } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { CircleCheck, CircleX, Ban, Copy, ScrollText } from "lucide-react";

import { PREFIX } from "@/api/client";
import { problemOf } from "@/api/problem";
import { useIsOperator, useMe } from "@/app/session";
import { ExplainedButton } from "@/parts/ExplainedButton";
import { ICONS } from "@/pages/jobs/actions/JobMenu";
import type { Job } from "@/pages/jobs/actions/possible";
import { useJobActions } from "@/pages/jobs/actions/useJobActions";
import { useObstacle } from "@/pages/jobs/actions/useObstacle";
import { texts } from "@/pages/jobs/job/texts";
import { useEndReason } from "@/pages/jobs/list/cells";
import { plainText } from "@/pages/jobs/logs/ansi";
import { Panel } from "@/parts/Panel";
import { useTexts } from "@/texts/texts";

const LAST_LINES = 12;

/** The advice for each end reason. */
const NEXT: Readonly<Record<string, keyof typeof texts>> = {
  exit_code: "nextExit",
  oom_killed: "nextMemory",
  disk_quota: "nextDisk",
  hung: "nextHung",
  timed_out: "nextTime",
  node_lost: "nextHardware",
  gpu_failed: "nextHardware",
  lost: "nextHardware",
  evicted: "nextHardware",
  preempted: "nextStopped",
  image_pull_error: "nextImage",
  launch_error: "nextLaunch",
  dependency_failed: "nextDependency",
  stopped_by_user: "nextStopped",
  stopped_by_operator: "nextStopped",
};

export function EndedPanel({ job }: { job: Job }) {
  const t = useTexts(texts);
  const reason = useEndReason();
  const isTemporary = job.end_reason === "evicted" && job.message.startsWith("temporary storage");
  const next = job.state === "completed" ? undefined : isTemporary ? "nextDisk" : NEXT[job.end_reason ?? ""];
  const [color, Icon] =
    job.state === "completed"
      ? (["teal", CircleCheck] as const)
      : job.state === "failed"
        ? (["red", CircleX] as const)
        : (["gray", Ban] as const);
  return (
    <Panel title={t("result")}>
      <Stack gap="md">
        <Group gap="sm" wrap="nowrap" align="flex-start">
          <ThemeIcon variant="light" color={color} radius="xl" size={32}>
            <Icon size={17} aria-hidden />
          </ThemeIcon>
          <div>
            <Text fw={550} pt={4}>
              {job.state === "completed"
                ? t("completedText")
                : t("endedBecause", { reason: reason(job.end_reason ?? "") })}
            </Text>
            {job.exit_code !== null && (
              <Text size="sm" c="dimmed">
                {t("exitCode")}: <span className="num">{job.exit_code}</span>
              </Text>
            )}
            {job.message !== "" && job.message !== `exit code ${job.exit_code}` && (
              <Text size="sm" style={{ overflowWrap: "anywhere" }}>
                {job.message}
              </Text>
            )}
          </div>
        </Group>
        {next !== undefined && <Text size="sm">{t(next)}</Text>}
        <NextSteps job={job} />
        <LastLines job={job} />
      </Stack>
    </Panel>
  );
}

function NextSteps({ job }: { job: Job }) {
  const t = useTexts(texts);
  const act = useJobActions();
  const obstacle = useObstacle();
  const Start = ICONS.start;
  return (
    <Group gap="xs">
      <ExplainedButton
        variant="light"
        leftSection={<Start size={14} />}
        why={obstacle("start", job)}
        onClick={() => act("start", job)}
      >
        {t("startAgain")}
      </ExplainedButton>
      {obstacle("clone", job) === undefined && (
        <Button
          variant="default"
          leftSection={<Copy size={14} />}
          renderRoot={(props) => <Link to="/jobs/new" search={{ clone: job.id }} {...props} />}
        >
          {t("cloneIt")}
        </Button>
      )}
      {job.attempt > 0 && (
        <Button
          variant="default"
          leftSection={<ScrollText size={14} />}
          renderRoot={(props) => <Link to="/jobs/$job" params={{ job: job.id }} search={{ tab: "logs" }} {...props} />}
        >
          {t("readLogs")}
        </Button>
      )}
    </Group>
  );
}

function LastLines({ job }: { job: Job }) {
  const t = useTexts(texts);
  const isMine = useMe().name === job.user;
  const isOperator = useIsOperator();
  const { data } = useQuery({
    queryKey: ["log-tail", job.id, job.attempt],
    enabled: job.attempt > 0 && (isMine || isOperator),
    queryFn: async () => {
      const answer = await fetch(`${PREFIX}/jobs/${job.id}/logs?tail=${LAST_LINES}`);
      if (!answer.ok) throw problemOf(undefined, answer.status);
      return answer.text();
    },
  });
  if (data === undefined || data.trim() === "") return null;
  return (
    <div>
      <Text size="sm" fw={600} mb={4}>
        {t("lastLines")}
      </Text>
      <Code block mah={260} tabIndex={0} aria-label={t("lastLines")} role="region">
        {plainText(data)}
      </Code>
    </div>
  );
}
