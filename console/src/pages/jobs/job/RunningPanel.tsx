/** For a job that holds its place: how far it is in its time, what its GPUs do, and whether it is about to lose them. */
import { Alert, Anchor, Badge, Group, Progress, SimpleGrid, Stack, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { TriangleAlert } from "lucide-react";

import { Sparkline } from "@/charts/Sparkline";
import { seriesColor } from "@/charts/colors";
import { ExplainedButton } from "@/parts/ExplainedButton";
import type { Job } from "@/pages/jobs/actions/possible";
import { useJobActions } from "@/pages/jobs/actions/useJobActions";
import { useObstacle } from "@/pages/jobs/actions/useObstacle";
import { actions } from "@/pages/jobs/actions/texts";
import { METRICS, shownAs, useReadings, values } from "@/pages/jobs/job/readings";
import { texts } from "@/pages/jobs/job/texts";
import { useEndReason } from "@/pages/jobs/list/cells";
import { useNow } from "@/parts/Moment";
import { Panel } from "@/parts/Panel";
import { Stat } from "@/parts/Stat";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

export const METRIC_TEXTS = {
  utilization: "utilization",
  memory_used: "memory",
  power: "power",
  temperature: "temperature",
} as const;

/** Where the scale of a sparkline ends; that of the others at their greatest value. */
const USUAL_TOPS = { utilization: 1, memory_used: 0, power: 0, temperature: 100 } as const;

export function RunningPanel({ job }: { job: Job }) {
  const t = useTexts(texts);
  return (
    <Panel title={t("now")}>
      <Stack gap="md">
        <Passing job={job} />
        <PaceWarning job={job} />
        <IdleWarning job={job} />
        <TimeUsed job={job} />
        <TemporaryStorage job={job} />
        {job.gpus > 0 && <Readings job={job} />}
        <Where job={job} />
      </Stack>
    </Panel>
  );
}

/** While it comes or goes. */
function Passing({ job }: { job: Job }) {
  const t = useTexts(texts);
  const format = useFormat();
  const reason = useEndReason();
  if (job.state === "starting") {
    return (
      <Alert color="cyan" title={t("startingTitle")}>
        {t("startingText")}
      </Alert>
    );
  }
  if (job.state !== "stopping") return null;
  return (
    <Alert color="orange" title={t("stoppingTitle")}>
      {t("stoppingText", { grace: format.duration(job.grace_seconds) })}{" "}
      {job.stopping_for !== null && `(${reason(job.stopping_for)})`}
    </Alert>
  );
}

/** A program that reports steps and hangs, or is slower than before. */
function PaceWarning({ job }: { job: Job }) {
  const t = useTexts(texts);
  const format = useFormat();
  const since = job.hung_since ?? job.slow_since;
  if (since === null) return null;
  const isHung = job.hung_since !== null;
  return (
    <Alert color="orange" icon={<TriangleAlert size={18} />} title={t(isHung ? "hungTitle" : "slowTitle")}>
      {t(isHung ? "hungText" : "slowText", { when: format.dayTime(since) })}{" "}
      {isHung && job.restart_if_hung && t("hungRestarts")}
    </Alert>
  );
}

function IdleWarning({ job }: { job: Job }) {
  const t = useTexts(texts);
  const ta = useTexts(actions);
  const format = useFormat();
  const act = useJobActions();
  const why = useObstacle()("extend", job);
  useNow();
  const warning = job.idle_warning;
  if (warning === null || warning === undefined) return null;
  return (
    <Alert color="orange" icon={<TriangleAlert size={18} />} title={t("idleTitle")}>
      <Group justify="space-between">
        <Text size="sm">
          {t("idleText", { when: format.ago(warning.deadline) })} {warning.extended_at !== null && t("idleExtended")}
        </Text>
        <ExplainedButton variant="default" why={why} onClick={() => act("extend", job)}>
          {ta("extend")}
        </ExplainedButton>
      </Group>
    </Alert>
  );
}

function TimeUsed({ job }: { job: Job }) {
  const t = useTexts(texts);
  const format = useFormat();
  const now = useNow();
  if (job.started_at === null) return null;
  const used = Math.max(0, (Math.max(now, Date.now()) - Date.parse(job.started_at)) / 1000);
  const limit = job.time_limit_seconds;
  if (limit === null)
    return <Text size="sm">{`${t("timeUsed")}: ${t("timeOpen", { used: format.duration(used) })}`}</Text>;
  const text = t("timeOf", { used: format.duration(used), limit: format.duration(limit) });
  const end = new Date(Date.parse(job.started_at) + limit * 1000);
  return (
    <div>
      <Group justify="space-between" mb={4}>
        <Text size="sm">
          {t("timeUsed")}: <b className="num">{text}</b>
        </Text>
        <Text size="xs" c="dimmed" title={format.dateTime(end)}>
          {t("endsAt", { when: format.ago(end) })}
        </Text>
      </Group>
      <Progress.Root size={8}>
        <Progress.Section
          value={Math.min(100, (used / limit) * 100)}
          color={used > 0.9 * limit ? "orange" : "blue"}
          aria-label={t("timeUsed")}
          aria-valuetext={text}
        />
      </Progress.Root>
    </div>
  );
}

/** How near the job is to being evicted for what it has in temporary storage. */
function TemporaryStorage({ job }: { job: Job }) {
  const t = useTexts(texts);
  const format = useFormat();
  const disk = job.disk;
  if (disk === null || disk === undefined) return null;
  const { temporary_bytes: used, temporary_limit_bytes: limit } = disk;
  if (limit === null) return <Text size="sm">{`${t("temporary")}: ${format.bytes(used)}`}</Text>;
  const text = t("timeOf", { used: format.bytes(used), limit: format.bytes(limit) });
  return (
    <div>
      <Group justify="space-between" mb={4}>
        <Text size="sm">
          {t("temporary")}: <b className="num">{text}</b>
        </Text>
        <Text size="xs" c="dimmed">
          {t("temporaryHint")}
        </Text>
      </Group>
      <Progress.Root size={8}>
        <Progress.Section
          value={Math.min(100, (used / limit) * 100)}
          color={used > 0.7 * limit ? "orange" : "blue"}
          aria-label={t("temporary")}
          aria-valuetext={text}
        />
      </Progress.Root>
    </div>
  );
}

function Readings({ job }: { job: Job }) {
  const t = useTexts(texts);
  const format = useFormat();
  const { data } = useReadings(job.id, false);
  return (
    <SimpleGrid cols={{ base: 2, md: 4 }} spacing="sm">
      {METRICS.map((metric, index) => {
        const found = values(data, metric);
        const last = found.at(-1);
        return (
          <Stat
            key={metric}
            label={t(METRIC_TEXTS[metric])}
            value={last === undefined ? "–" : shownAs(metric, format)(last)}
            detail={last === undefined ? t("noReadings") : undefined}
            chart={
              <Sparkline
                label={t(METRIC_TEXTS[metric])}
                values={found.slice(-60)}
                usualTop={USUAL_TOPS[metric]}
                format={shownAs(metric, format)}
                color={seriesColor(index)}
              />
            }
          />
        );
      })}
    </SimpleGrid>
  );
}

function Where({ job }: { job: Job }) {
  const t = useTexts(texts);
  const format = useFormat();
  if (job.allocation === null) return null;
  return (
    <div>
      <Text size="sm" fw={600} mb={4}>
        {t("where")}
      </Text>
      {job.allocation.grants.map((grant) => (
        <Group key={grant.node} gap={8} mb={4}>
          <Text size="sm">{grant.node}</Text>
          {grant.gpus.map((gpu) => (
            <Badge
              key={gpu}
              variant="default"
              tt="none"
              fw={500}
              renderRoot={(props) => <Anchor component={Link} to={`/gpus/${gpu}`} {...props} />}
              style={{ cursor: "pointer" }}
            >
              {gpu.replace(`${grant.node}/`, "")}
            </Badge>
          ))}
          {grant.gpus.length > 0 && grant.gpu_share > 0 && grant.gpu_share < 1 && (
            <Text size="xs" c="dimmed">
              {t("share", { n: format.number(grant.gpu_share) })}
            </Text>
          )}
          {grant.gpus.length === 0 && (
            <Text size="xs" c="dimmed">
              {t("noGpus")}
            </Text>
          )}
        </Group>
      ))}
    </div>
  );
}
