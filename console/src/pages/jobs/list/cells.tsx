/** The cells of the list of jobs. */
import { Badge, Group, Text, Tooltip } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { Layers3, Pin } from "lucide-react";

import { isEnded, type Job } from "@/pages/jobs/actions/possible";
import { usePlace } from "@/pages/jobs/list/planned";
import { reasons, texts } from "@/pages/jobs/list/texts";
import { Faint } from "@/parts/DataTable";
import { Moment, useNow } from "@/parts/Moment";
import { StateBadge } from "@/parts/StateBadge";
import { startOf } from "@/parts/startOf";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

export function NameCell({ job }: { job: Job }) {
  return (
    <>
      {job.name}
      <Faint>{job.id}</Faint>
    </>
  );
}

export function StateCell({ job }: { job: Job }) {
  const t = useTexts(texts);
  return (
    <Group gap={6} wrap="nowrap">
      <div>
        <StateBadge state={job.state} />
        <Ending job={job} />
      </div>
      {job.pinned_at !== null && (
        <Tooltip label={t("pinned")}>
          <Pin size={13} aria-label={t("pinned")} role="img" />
        </Tooltip>
      )}
      {job.array !== null && job.array !== undefined && <ArrayBadge array={job.array} />}
    </Group>
  );
}

/** Why it ended, where the state alone does not say it. */
function Ending({ job }: { job: Job }) {
  const t = useTexts(texts);
  const reason = useEndReason();
  if (job.end_reason === null || !isEnded(job) || job.state === "completed") return null;
  const code =
    job.end_reason === "exit_code" && job.exit_code !== null
      ? t("exitCode", { n: job.exit_code })
      : reason(job.end_reason);
  return <Faint>{code}</Faint>;
}

export function useEndReason(): (reason: string) => string {
  const t = useTexts(reasons);
  return (reason) => (reason in reasons ? t(reason as keyof typeof reasons) : reason);
}

function ArrayBadge({ array }: { array: NonNullable<Job["array"]> }) {
  const t = useTexts(texts);
  const hint = t("arrayHint", { index: array.index, name: array.name, size: array.size });
  return (
    <Tooltip label={hint}>
      <Badge
        variant="default"
        tt="none"
        fw={500}
        leftSection={<Layers3 size={11} />}
        renderRoot={(props) => <Link to="/jobs" search={{ array: array.name }} aria-label={hint} {...props} />}
        style={{ cursor: "pointer" }}
      >
        {array.name}[{array.index}]
      </Badge>
    </Tooltip>
  );
}

/** The end of the address, which distinguishes images; the whole address as its title. */
export function ImageCell({ job }: { job: Job }) {
  const image = job.image ?? "";
  return image === "" ? null : <span title={image}>{image.split("/").at(-1)}</span>;
}

export function SizeCell({ job }: { job: Job }) {
  const t = useTexts(texts);
  const format = useFormat();
  const model = job.allocation?.model || job.models.join(", ");
  const gpus =
    job.gpus === 0 ? t("noGpu") : job.nodes > 1 ? `${job.nodes} × ${format.number(job.gpus)}` : format.number(job.gpus);
  const elastic = job.elastic;
  return (
    <>
      {gpus}
      <Faint>
        {elastic !== null && elastic !== undefined
          ? t("elastic", { min: elastic.min_gpus, max: elastic.max_gpus })
          : model || " "}
      </Faint>
    </>
  );
}

/** How long it waits, runs or ran. */
export function ElapsedCell({ job }: { job: Job }) {
  const t = useTexts(texts);
  const format = useFormat();
  const now = useNow();
  const [text, from, to] = span(job);
  if (from === null) return <>–</>;
  const seconds = Math.max(0, ((to === null ? Math.max(now, Date.now()) : Date.parse(to)) - Date.parse(from)) / 1000);
  return <>{t(text, { time: format.duration(seconds) })}</>;
}

function span(job: Job): ["waiting" | "running" | "ran" | "waitedOnly", from: string | null, to: string | null] {
  if (job.state === "queued") return ["waiting", job.queued_at, null];
  if (!isEnded(job)) return ["running", job.started_at ?? null, null];
  if (job.started_at !== null) return ["ran", job.started_at, job.ended_at];
  return ["waitedOnly", job.queued_at, job.ended_at];
}

/** When a waiting job is to start, and when a running one must end. */
export function ExpectedCell({ job }: { job: Job }) {
  const place = usePlace(job.id);
  const end = expectedEnd(job);
  if (job.state === "queued") {
    const estimate = job.estimated_start ?? place?.estimated_start;
    const start = startOf(place?.planned_start, estimate);
    if (start?.isBound) return <When text="startsAt" at={start.at} />;
    if (estimate) return <Estimated estimate={estimate} />;
  }
  return end === undefined ? <>–</> : <When text="endsBy" at={end} />;
}

export function expectedEnd(job: Job): string | undefined {
  const runs = job.state === "running" || job.state === "starting";
  if (!runs || job.started_at === null || job.time_limit_seconds === null) return undefined;
  return new Date(Date.parse(job.started_at) + job.time_limit_seconds * 1000).toISOString();
}

/** When half of such jobs have started, with the time of nine in ten on hover. */
function Estimated({ estimate }: { estimate: NonNullable<Job["estimated_start"]> }) {
  const t = useTexts(texts);
  const format = useFormat();
  return (
    <span
      title={t("estimate", { p50: format.dateTime(estimate.p50), p90: format.dateTime(estimate.p90) })}
      data-testid="estimate"
    >
      <When text="startsAbout" at={estimate.p50} />
    </span>
  );
}

function When({ text, at }: { text: "startsAt" | "startsAbout" | "endsBy"; at: string }) {
  const t = useTexts(texts);
  const [before, after] = t(text, { when: "\u0000" }).split("\u0000");
  return (
    <Text span size="sm">
      {before}
      <Moment at={at} />
      {after}
    </Text>
  );
}
