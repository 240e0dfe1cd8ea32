/**
 * The values of the API's enumerations, in the order in which the console lists them. They are checked against the types made
 * from the API's description: a value that is unknown there, or missing here, does not compile.
 */
import type { Schema } from "@/api/client";

type Missing<T extends string, L extends readonly T[]> =
  Exclude<T, L[number]> extends never ? unknown : { readonly missing: Exclude<T, L[number]> };

function every<T extends string>() {
  return <const L extends readonly T[]>(values: L & Missing<T, L>): L => values;
}

export const JOB_KINDS = every<Schema<"JobKind">>()(["training", "distributed", "preset", "workbench"]);
export const JOB_STATES = every<Schema<"JobState">>()([
  "created",
  "queued",
  "starting",
  "running",
  "stopping",
  "completed",
  "failed",
  "stopped",
]);
export const NODE_STATES = every<Schema<"NodeState">>()(["ready", "cordoned", "draining", "drained", "down"]);
export const GPU_HEALTH = every<Schema<"GpuHealth">>()(["healthy", "suspect", "failed"]);
export const PREEMPTION_RULES = every<Schema<"PreemptionRule">>()([
  "guarantee",
  "reservation",
  "order",
  "overrun",
  "move",
  "defragmentation",
  "migration",
  "drain",
]);
export const MOUNT_KINDS = every<Schema<"MountKind">>()(["volume", "dataset", "local"]);
export const FINDING_KINDS = every<Schema<"FindingKind">>()([
  "idle-allocation",
  "low-utilization",
  "oversized-request",
  "fragmentation",
  "pool-balance",
  "starving-queue",
  "hot-gpu",
]);
/** The severities, from the least to the most serious. */
export const SEVERITIES = every<Schema<"Severity">>()(["info", "warning", "critical"]);
export const COMPARISONS = every<Schema<"RuleView">["comparison"]>()(["above", "at-least", "below", "at-most"]);
export const ALERT_ACTIONS = every<Schema<"RuleView">["actions"][number]>()([
  "cordon-node",
  "mark-gpu",
  "requeue-job",
  "stop-job",
]);
export const PERSONAL_CHANNEL_KINDS = every<Schema<"PersonalChannelKind">>()([
  "mail",
  "slack",
  "discord",
  "teams",
  "webhook",
]);
export const INBOX_KINDS = every<Schema<"InboxKind">>()([
  "started",
  "ended",
  "failed",
  "preempted",
  "estimate",
  "idle",
  "stalled",
  "storage",
  "quota",
  "shared",
  "fleet",
]);
export const TOKEN_SCOPES = every<Schema<"Scope">>()(["read", "jobs", "full"]);
export const PROVIDER_KINDS = every<Schema<"ProviderCreate">["kind"]>()(["oidc", "ldap", "github", "gitlab"]);
export const SCHEDULE_PERIODS = every<NonNullable<Schema<"ScheduleCreate">["period"]>>()([
  "daily",
  "weekly",
  "monthly",
]);
