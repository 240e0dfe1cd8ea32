/**
 * The actions on a job that its state and the user's rights allow. The server decides; this shows the same before the
 * click.
 */
import type { Schema } from "@/api/client";
import type { Me } from "@/app/session";
import type { actions, obstacles } from "@/pages/jobs/actions/texts";

export type Job = Schema<"JobView">;
export type ActionName = keyof typeof actions;
export type Obstacle = keyof typeof obstacles;

const ENDED: readonly string[] = ["completed", "failed", "stopped"];
const ACTIVE: readonly string[] = ["queued", "starting", "running", "stopping"];
const BY_PERSONS: readonly (string | null)[] = ["stopped_by_user", "stopped_by_operator"];

export function isEnded(job: Job): boolean {
  return ENDED.includes(job.state);
}

export function isActive(job: Job): boolean {
  return ACTIVE.includes(job.state);
}

export function isWaiting(job: Job): boolean {
  return job.state === "queued" || job.state === "created";
}

/** Why the viewer cannot do this with the job now; undefined where it can be done. */
export function obstacleTo(action: ActionName, job: Job, me: Me): Obstacle | undefined {
  const isOperator = me.role === "operator";
  if ((action === "pin" || action === "unpin") && !isOperator) return "onlyOperators";
  if (job.user !== me.name && !isOperator) return "notYours";
  return RULES[action](job);
}

const RULES: Readonly<Record<ActionName, (job: Job) => Obstacle | undefined>> = {
  stop: (job) =>
    isEnded(job) ? "ended" : job.state === "stopping" && BY_PERSONS.includes(job.stopping_for) ? "stopping" : undefined,
  start: (job) => (isActive(job) ? "active" : undefined),
  requeue: onlyRunning(["running", "starting"]),
  clone: () => undefined,
  resize: (job) => (job.elastic === null || job.elastic === undefined ? "notElastic" : onlyRunning(["running"])(job)),
  migrate: (job) =>
    job.kind === "workbench"
      ? "isWorkbench"
      : (job.allocation?.grants.length ?? 0) > 1
        ? "manyNodes"
        : onlyRunning(["running"])(job),
  pin: (job) => (job.state === "queued" ? undefined : "onlyQueued"),
  unpin: (job) => (job.state === "queued" ? undefined : "onlyQueued"),
  // Until it starts everything, later the fields that only describe it.
  edit: () => undefined,
  checkpoint: onlyRunning(["running"]),
  extend: (job) =>
    job.idle_warning === null || job.idle_warning === undefined
      ? "notWarned"
      : job.idle_warning.extended_at !== null
        ? "extended"
        : undefined,
  remove: (job) => (isActive(job) ? "stopFirst" : undefined),
};

function onlyRunning(states: readonly string[]): (job: Job) => Obstacle | undefined {
  return (job) => (states.includes(job.state) ? undefined : "onlyRunning");
}

/** The job as it is shown right after a user stops it. */
export function asStopped(job: Job): Job {
  const waits = job.state === "queued" || job.state === "created";
  return { ...job, state: waits ? "stopped" : "stopping" };
}
