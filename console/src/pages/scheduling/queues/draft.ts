/** A queue as it is typed, and as the API takes it. */
import type { Schema } from "@/api/client";
import { durationText, parseDuration } from "@/texts/durations";

export type Queue = Schema<"QueueView">;
export type Kind = Queue["kinds"][number];

export interface Draft {
  name: string;
  pool: string;
  policy: string;
  blocking: Queue["blocking"];
  placement: string;
  preempts: boolean;
  weight: string;
  guaranteed_gpus: string;
  max_gpus: string;
  max_length: string;
  min_job_gpus: string;
  max_job_gpus: string;
  max_seconds: string;
  kinds: Kind[];
  groups: string[];
}

export function draftOf(queue: Queue | undefined): Draft {
  const count = (value: number | null | undefined) => (value === null || value === undefined ? "" : String(value));
  return {
    name: queue?.name ?? "",
    pool: queue?.pool ?? "default",
    policy: queue?.policy ?? "fair-share",
    blocking: queue?.blocking ?? "backfill",
    placement: queue?.placement ?? "fragmentation",
    preempts: queue?.preempts ?? false,
    weight: String(queue?.weight ?? 1),
    guaranteed_gpus: String(queue?.guaranteed_gpus ?? 0),
    max_gpus: count(queue?.max_gpus),
    max_length: count(queue?.max_length),
    min_job_gpus: count(queue?.min_job_gpus),
    max_job_gpus: count(queue?.max_job_gpus),
    max_seconds: queue?.max_seconds === null || queue === undefined ? "" : durationText(queue.max_seconds),
    kinds: queue?.kinds ?? [],
    groups: queue?.groups ?? [],
  };
}

/** Undefined where the text is no whole number; null where nothing is given. */
export function countOf(text: string): number | null | undefined {
  if (text.trim() === "") return null;
  return /^\d+$/.test(text.trim()) ? Number(text) : undefined;
}

/** A weight is any number above zero. */
export function weightOf(text: string): number | undefined {
  const weight = text.trim() === "" ? Number.NaN : Number(text);
  return Number.isFinite(weight) && weight > 0 ? weight : undefined;
}

/** Everything but the name and the pool. `ranksJobs`: whether the draft's ordering policy ranks jobs. */
export function settingsOf(draft: Draft, ranksJobs: boolean): Schema<"QueueEdit"> {
  return {
    policy: draft.policy,
    blocking: draft.blocking,
    placement: draft.placement,
    // Without ranks no waiting job can be before a running one, so an earlier choice has no effect.
    preempts: draft.preempts && ranksJobs,
    weight: weightOf(draft.weight) ?? 1,
    guaranteed_gpus: countOf(draft.guaranteed_gpus) ?? 0,
    max_gpus: countOf(draft.max_gpus) ?? null,
    max_length: countOf(draft.max_length) ?? null,
    min_job_gpus: countOf(draft.min_job_gpus) ?? null,
    max_job_gpus: countOf(draft.max_job_gpus) ?? null,
    max_seconds: draft.max_seconds.trim() === "" ? null : (parseDuration(draft.max_seconds) ?? null),
    kinds: draft.kinds,
    groups: draft.groups,
  };
}

/** A pool's own queue has its name, and goes only with it. */
export function isDefaultOfPool(queue: Queue): boolean {
  return queue.name === queue.pool;
}

export interface Holding {
  /** Held within the guarantee. */
  readonly own: number;
  readonly borrowed: number;
  /** Guaranteed, asked for by jobs that wait, and not held. */
  readonly owed: number;
  /** The total that the bar represents. */
  readonly whole: number;
}

export function holdingOf(
  queue: Pick<Queue, "held_gpus" | "borrowed_gpus" | "owed_gpus" | "guaranteed_gpus">,
): Holding {
  const { borrowed_gpus: borrowed, owed_gpus: owed } = queue;
  const own = Math.max(0, queue.held_gpus - borrowed);
  return { own, borrowed, owed, whole: Math.max(queue.guaranteed_gpus, own + borrowed + owed) };
}
