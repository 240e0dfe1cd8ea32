/** Each attempt as bars on one scale of time, with the same in words: waiting, starting, running, how it ended. */
import { Box, Group, Skeleton, Stack, Text, Tooltip } from "@mantine/core";

import { $api, type Schema } from "@/api/client";
import type { Job } from "@/pages/jobs/actions/possible";
import classes from "@/pages/jobs/job/Timeline.module.css";
import { rowsOf, spanOf, type Attempt, type Bar, type Row } from "@/pages/jobs/job/timeline";
import { energy } from "@/pages/jobs/job/UsagePanel";
import { texts } from "@/pages/jobs/job/texts";
import { useEndReason } from "@/pages/jobs/list/cells";
import { useNow } from "@/parts/Moment";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

type Checkpoint = Schema<"CheckpointView">;

export function Timeline({ job }: { job: Job }) {
  const t = useTexts(texts);
  const now = Math.max(useNow(), Date.now());
  const at = { params: { path: { job: job.id } } };
  const { data: attempts, error, refetch } = $api.useQuery("get", "/jobs/{job}/attempts", at);
  const { data: saved } = $api.useQuery("get", "/jobs/{job}/checkpoints", at, {
    enabled: job.attempt > 0,
    retry: false,
  });
  if (error !== null) return <ProblemNote error={error} onRetry={() => void refetch()} />;
  const rows = attempts === undefined ? undefined : rowsOf(job, attempts.items, now);
  return (
    <Panel title={t("attempts")} tools={<Legend />}>
      {rows === undefined ? (
        <Skeleton h={60} />
      ) : rows.length === 0 ? (
        <Text size="sm" c="dimmed">
          {t("noAttempts")}
        </Text>
      ) : (
        <Rows rows={rows} checkpoints={saved?.items ?? []} />
      )}
    </Panel>
  );
}

function Legend() {
  const t = useTexts(texts);
  return (
    <Group gap="md" aria-hidden>
      {(["wait", "launch", "run"] as const).map((phase) => (
        <Group key={phase} gap={6}>
          <Box className={`${classes.mark} ${classes[phase] ?? ""}`} />
          <Text size="xs" c="dimmed">
            {t(phase)}
          </Text>
        </Group>
      ))}
    </Group>
  );
}

function Rows({ rows, checkpoints }: { rows: readonly Row[]; checkpoints: readonly Checkpoint[] }) {
  const format = useFormat();
  const span = spanOf(rows);
  return (
    <Stack gap="sm" component="ol" p={0} m={0}>
      {rows.map((row) => (
        <RowItem
          key={row.number}
          row={row}
          span={span}
          checkpoints={checkpoints.filter((saved) => saved.attempt === row.number)}
        />
      ))}
      <Group justify="space-between" component="li" style={{ listStyle: "none" }} aria-hidden>
        <Text size="xs" c="dimmed" className="num">
          {format.dateTime(span[0])}
        </Text>
        <Text size="xs" c="dimmed" className="num">
          {format.dateTime(span[1])}
        </Text>
      </Group>
    </Stack>
  );
}

function RowItem({
  row,
  span,
  checkpoints,
}: {
  row: Row;
  span: readonly [number, number];
  checkpoints: readonly Checkpoint[];
}) {
  const t = useTexts(texts);
  const story = useStory()(row);
  return (
    <li style={{ listStyle: "none" }}>
      <Group gap="xs" mb={4} justify="space-between">
        <Text size="sm" fw={600}>
          {t("attempt", { n: row.number })}
        </Text>
        <Text size="sm">{story}</Text>
      </Group>
      <div className={classes.track} role="img" aria-label={t("timeline", { text: story })}>
        {row.bars.map((bar) => (
          <div
            key={bar.phase}
            className={`${classes.bar} ${classes[bar.phase] ?? ""} ${bar.isOpen ? classes.open : ""}`}
            style={place(bar, span)}
          />
        ))}
        {checkpoints.map((saved) => (
          <Mark key={saved.name} saved={saved} span={span} />
        ))}
      </div>
      {row.attempt !== undefined && <AttemptLine attempt={row.attempt} />}
    </li>
  );
}

function Mark({ saved, span }: { saved: Checkpoint; span: readonly [number, number] }) {
  const t = useTexts(texts);
  const format = useFormat();
  if (saved.saved_at === null) return null;
  const left = ((Date.parse(saved.saved_at) - span[0]) / (span[1] - span[0])) * 100;
  return (
    <Tooltip label={t("checkpointAt", { step: saved.step, when: format.dateTime(saved.saved_at) })}>
      <div className={classes.checkpoint} style={{ left: `${Math.min(100, Math.max(0, left))}%` }} />
    </Tooltip>
  );
}

/** Where it ran, what it used, and what was said about its end. */
function AttemptLine({ attempt }: { attempt: Attempt }) {
  const t = useTexts(texts);
  const format = useFormat();
  const nodes = attempt.allocation.grants.map((grant) =>
    grant.gpus.length === 0
      ? grant.node
      : `${grant.node} (${grant.gpus.map((gpu) => gpu.replace(`${grant.node}/`, "")).join(", ")})`,
  );
  const usage = attempt.usage;
  const used =
    usage && usage.gpu_hours >= 0.01
      ? t("usedText", {
          hours: format.number(usage.gpu_hours),
          use: format.percent(usage.utilization),
          energy: energy(usage.energy_kwh, format),
        })
      : undefined;
  return (
    <Text size="xs" c="dimmed" mt={3} style={{ overflowWrap: "anywhere" }}>
      {[
        t("on", { nodes: nodes.join(", ") }),
        used,
        attempt.message === `exit code ${attempt.exit_code}` ? undefined : attempt.message || undefined,
      ]
        .filter((part) => part !== undefined)
        .join(" · ")}
    </Text>
  );
}

function useStory(): (row: Row) => string {
  const t = useTexts(texts);
  const format = useFormat();
  const reason = useEndReason();
  return (row) => {
    const parts = row.bars
      .filter((bar) => bar.isOpen || bar.to - bar.from >= 1_000)
      .map((bar) => t(wordOf(bar), { time: format.duration((bar.to - bar.from) / 1000) }));
    const end = row.attempt?.end_reason;
    const code = row.attempt?.exit_code;
    if (end !== null && end !== undefined)
      parts.push(end === "exit_code" ? `${t("exitCode")} ${code ?? "?"}` : reason(end));
    return parts.join(" · ");
  };
}

function wordOf(bar: Bar): "waited" | "waitsNow" | "launching" | "ran" | "runs" {
  if (bar.phase === "launch") return "launching";
  if (bar.phase === "wait") return bar.isOpen ? "waitsNow" : "waited";
  return bar.isOpen ? "runs" : "ran";
}

function place(bar: Bar, [from, to]: readonly [number, number]): { left: string; width: string } {
  const whole = to - from;
  return { left: `${((bar.from - from) / whole) * 100}%`, width: `${((bar.to - bar.from) / whole) * 100}%` };
}
