/** The differences from the cluster as they are typed: an empty field changes nothing. */
import type { Schema } from "@/api/client";
import { parseDuration } from "@/texts/durations";

export type Changes = Schema<"Changes">;
type QueueChange = NonNullable<Changes["queues"]>[string];

/** Every queue; an entry of its own wins over it. */
export const EVERY_QUEUE = "*";

export interface QueueDraft {
  queue: string;
  policy: string;
  blocking: string;
  placement: string;
  preempts: "" | "yes" | "no";
  guaranteed_gpus: string;
  weight: string;
  max_gpus: string;
}

export interface NodesDraft {
  nodes: string;
  gpus: string;
  model: string;
  pool: string;
}

export interface QuotaDraft {
  user: string;
  gpus: string;
}

export interface ChangesDraft {
  queues: QueueDraft[];
  preemption: "" | "yes" | "no";
  min_run: string;
  protected_starts: string;
  max_gpus_per_user: string;
  max_gpus_per_job: string;
  quotas: QuotaDraft[];
  scale: string;
  add: NodesDraft[];
  remove: string[];
  any_model: boolean;
  all_policies: boolean;
}

export const NO_QUEUE: QueueDraft = {
  queue: EVERY_QUEUE,
  policy: "",
  blocking: "",
  placement: "",
  preempts: "",
  guaranteed_gpus: "",
  weight: "",
  max_gpus: "",
};
export const NO_NODES: NodesDraft = { nodes: "1", gpus: "8", model: "", pool: "default" };
export const NO_QUOTA: QuotaDraft = { user: "", gpus: "" };
export const NO_CHANGES: ChangesDraft = {
  queues: [NO_QUEUE],
  preemption: "",
  min_run: "",
  protected_starts: "",
  max_gpus_per_user: "",
  max_gpus_per_job: "",
  quotas: [],
  scale: "",
  add: [],
  remove: [],
  any_model: false,
  all_policies: false,
};

export function changesOf(draft: ChangesDraft): Changes {
  const queues = draft.queues
    .map((one) => [one.queue, queueChangeOf(one)] as const)
    .filter(([, change]) => isSaid(change));
  const quotas = draft.quotas.filter((one) => one.user !== "" && number(one.gpus) !== undefined);
  const changes: Changes = {
    queues: said(Object.fromEntries(queues)),
    preemption: said({ enabled: choice(draft.preemption), min_run_seconds: duration(draft.min_run) }),
    protected_starts: number(draft.protected_starts),
    limits: said({
      max_gpus_per_user: number(draft.max_gpus_per_user),
      max_gpus_per_job: number(draft.max_gpus_per_job),
    }),
    quotas: said(Object.fromEntries(quotas.map((one) => [one.user, Number(one.gpus)]))),
    fleet: said({
      scale: number(draft.scale),
      add: draft.add.length === 0 ? undefined : draft.add.map(nodesOf),
      remove: draft.remove.length === 0 ? undefined : draft.remove,
    }),
    any_model: draft.any_model ? true : undefined,
    all_policies: draft.all_policies ? true : undefined,
  };
  return given(changes);
}

/** The part that a shadow can take: it lives in the same fleet, with the same people. */
export function shadowChangesOf(draft: ChangesDraft): Changes {
  const { queues, preemption, protected_starts: starts } = changesOf(draft);
  return given({ queues, preemption, protected_starts: starts });
}

export function isEmpty(changes: Changes): boolean {
  return Object.keys(changes).length === 0;
}

/** The names of fields that are not right, by the draft's own paths. */
export function wrongOf(draft: ChangesDraft): Readonly<Record<string, "count" | "above" | "time">> {
  const wrong: Record<string, "count" | "above" | "time"> = {};
  const count = (path: string, text: string) => {
    if (text.trim() !== "" && !/^\d+$/.test(text.trim())) wrong[path] = "count";
  };
  const above = (path: string, text: string) => {
    if (text.trim() !== "" && !(Number(text) > 0 && Number(text) < Infinity)) wrong[path] = "above";
  };
  for (const [at, queue] of draft.queues.entries()) {
    count(`queues.${at}.guaranteed_gpus`, queue.guaranteed_gpus);
    count(`queues.${at}.max_gpus`, queue.max_gpus);
    above(`queues.${at}.weight`, queue.weight);
  }
  count("protected_starts", draft.protected_starts);
  count("max_gpus_per_user", draft.max_gpus_per_user);
  count("max_gpus_per_job", draft.max_gpus_per_job);
  above("scale", draft.scale);
  if (draft.min_run.trim() !== "" && parseDuration(draft.min_run) === undefined) wrong.min_run = "time";
  for (const [at, quota] of draft.quotas.entries()) count(`quotas.${at}.gpus`, quota.gpus);
  for (const [at, nodes] of draft.add.entries()) {
    above(`add.${at}.nodes`, nodes.nodes || "0");
    above(`add.${at}.gpus`, nodes.gpus || "0");
  }
  return wrong;
}

function queueChangeOf(draft: QueueDraft): QueueChange {
  return given({
    policy: draft.policy || undefined,
    blocking: draft.blocking || undefined,
    placement: draft.placement || undefined,
    preempts: choice(draft.preempts),
    guaranteed_gpus: number(draft.guaranteed_gpus),
    weight: number(draft.weight),
    max_gpus: number(draft.max_gpus),
  }) as QueueChange;
}

function nodesOf({ nodes, gpus, model, pool }: NodesDraft) {
  return { nodes: Number(nodes), gpus: Number(gpus), model, pool };
}

function number(text: string): number | undefined {
  return text.trim() === "" || !Number.isFinite(Number(text)) ? undefined : Number(text);
}

function duration(text: string): number | undefined {
  return text.trim() === "" ? undefined : parseDuration(text);
}

function choice(text: "" | "yes" | "no"): boolean | undefined {
  return text === "" ? undefined : text === "yes";
}

/** Undefined where nothing in it is said. */
function said<T extends object>(part: T): T | undefined {
  return isSaid(part) ? given(part) : undefined;
}

function isSaid(part: object): boolean {
  return Object.values(part).some((value) => value !== undefined);
}

function given<T extends object>(part: T): T {
  return Object.fromEntries(Object.entries(part).filter(([, value]) => value !== undefined)) as T;
}
