/** A job that is being put together: every field as it was typed, so that nothing is lost while it is not right yet. */
import type { Schema } from "@/api/client";
import { JOB_KINDS } from "@/api/enumerations";
import { lineOf } from "@/pages/jobs/newjob/draft/commandline";
import { MOUNT_SOURCES, ofMount, type Mount } from "@/pages/jobs/newjob/draft/mounts";
import { eachPlain, typedValue, type PlainValues } from "@/pages/jobs/spec/fields";
import { eachSwitch, type SwitchValues } from "@/pages/jobs/spec/switches";
import { ownLabels } from "@/pages/jobs/spec/submission";
import { sizeText } from "@/texts/sizes";

export type Kind = Schema<"JobKind">;

export interface Variable {
  readonly name: string;
  readonly value: string;
}

export interface Draft extends PlainValues, SwitchValues {
  /** The source of the draft, such as "clone=j-12"; empty for a new one. */
  readonly origin: string;
  readonly kind: Kind;
  readonly name: string;
  readonly imageFrom: "node" | "list" | "address";
  readonly image: string;
  readonly mounts: readonly Mount[];
  /** Unset until it is known whether there are packages. */
  readonly sizing: "unset" | "package" | "custom";
  readonly package: string;
  readonly nodes: string;
  readonly gpus: string;
  readonly isElastic: boolean;
  readonly min_gpus: string;
  readonly max_gpus: string;
  readonly restart_unsaved: boolean;
  readonly cpus: string;
  readonly memory: string;
  readonly model: readonly string[];
  readonly flavor: string;
  /** Labels that the nodes must have: the form has no field for them, a clone keeps those of its job. */
  readonly labels: Readonly<Record<string, string>>;
  readonly command: string;
  readonly preset: string;
  readonly parameters: Readonly<Record<string, string>>;
  readonly env: readonly Variable[];
  /** Names of secrets, with commas; their values never reach the browser. */
  readonly secrets: string;
  readonly app: string;
  readonly port: string;
  readonly app_name: string;
  readonly queue: string;
  readonly after: readonly string[];
  readonly array: string;
  /** The items of the array run one after another. */
  readonly pack: boolean;
  /** Failures of the program that are retried, with commas. */
  readonly retry_on: string;
  readonly hold: boolean;
  readonly jupyter: boolean;
  readonly ssh: boolean;
  readonly idle_stop: string;
}

/** A change of some fields, or what to change depending on what there is. */
export type Change = Partial<Draft> | ((before: Draft) => Partial<Draft>);

export function changed(before: Draft, change: Change): Draft {
  return { ...before, ...(typeof change === "function" ? change(before) : change) };
}

export const EMPTY: Draft = {
  ...eachPlain(() => ""),
  ...eachSwitch((row) => row.usual),
  origin: "",
  kind: "training",
  name: "",
  imageFrom: "node",
  image: "",
  mounts: [],
  sizing: "unset",
  package: "",
  nodes: "2",
  gpus: "1",
  isElastic: false,
  min_gpus: "1",
  max_gpus: "",
  restart_unsaved: false,
  cpus: "",
  memory: "",
  model: [],
  flavor: "",
  labels: {},
  command: "",
  preset: "",
  parameters: {},
  env: [],
  secrets: "",
  app: "",
  port: "",
  app_name: "",
  queue: "",
  after: [],
  array: "",
  pack: false,
  retry_on: "",
  hold: false,
  jupyter: true,
  ssh: false,
  idle_stop: "",
};

/** A preset brings its own size: what is left empty is as it says. */
export function ofPreset(preset: string, origin = ""): Draft {
  return { ...EMPTY, origin, kind: "preset", preset, gpus: "" };
}

/** Another one like a job that there is; without its name, which is taken. */
export function ofJob(job: Schema<"JobView">, origin: string, images: readonly Schema<"ImageView">[]): Draft {
  const isNamed = images.some((image) => image.name === job.image || `${image.owner}/${image.name}` === job.image);
  return {
    ...EMPTY,
    origin,
    kind: job.kind,
    imageFrom: job.image === null || job.image === undefined ? "node" : isNamed ? "list" : "address",
    image: job.image ?? "",
    mounts: (job.mounts ?? []).map(ofMount),
    ...sizeOf(job),
    labels: ownLabels(job.labels),
    command: job.kind === "preset" || job.kind === "workbench" ? "" : lineOf(job.command),
    preset: job.preset ?? "",
    parameters: job.parameters ?? {},
    env: Object.entries(job.env).map(([name, value]) => ({ name, value })),
    secrets: (job.secrets ?? []).join(", "),
    app: job.app ?? "",
    port: job.app_port === null || job.app_port === undefined ? "" : String(job.app_port),
    app_name: job.app_name ?? "",
    ...eachPlain((row) => typedValue(row, job)),
    queue: job.queue,
    ...eachSwitch((row) => job[row.name]),
    retry_on: (job.retry_on ?? []).join(","),
  };
}

function sizeOf(job: Schema<"JobView">): Partial<Draft> {
  const nodes = job.kind === "distributed" ? { nodes: String(job.nodes) } : {};
  if (job.package !== null) return { ...nodes, sizing: "package", package: job.package };
  const elastic = job.elastic ?? null;
  return {
    ...nodes,
    sizing: "custom",
    gpus: String(job.gpus),
    isElastic: elastic !== null,
    min_gpus: elastic === null ? EMPTY.min_gpus : String(elastic.min_gpus),
    max_gpus: elastic === null ? "" : String(elastic.max_gpus),
    restart_unsaved: job.restart_unsaved,
    cpus: job.cpus === 0 ? "" : String(job.cpus),
    memory: job.memory_bytes === 0 ? "" : sizeText(job.memory_bytes),
    flavor: job.flavor ?? "",
    model: job.flavor === null ? job.models : [],
  };
}

// ------------------------------------------------------------------------------------------------ kept over a reload

const PLACE = "corral.newjob";
/** Names of variables whose values are likely to be secrets: they are never kept in the browser. */
const SECRET = /secret|token|passw|passphrase|credential|key|auth|private|cookie|session/i;

/** Kept for this tab alone, and for this person. */
export function keepDraft(user: string, draft: Draft): void {
  const env = draft.env.map((one) => (SECRET.test(one.name) ? { name: one.name, value: "" } : one));
  const parameters = Object.fromEntries(Object.entries(draft.parameters).filter(([name]) => !SECRET.test(name)));
  try {
    sessionStorage.setItem(PLACE, JSON.stringify({ user, draft: { ...draft, env, parameters } }));
  } catch {
    // A full or forbidden storage costs only the memory of it.
  }
}

export function keptDraft(user: string): Draft | undefined {
  try {
    const kept: unknown = JSON.parse(sessionStorage.getItem(PLACE) ?? "null");
    if (!isRecord(kept) || kept.user !== user || !isRecord(kept.draft)) return undefined;
    return restored(kept.draft);
  } catch {
    // Storage that is switched off, or was edited by hand, counts as empty.
    return undefined;
  }
}

export function dropDraft(): void {
  try {
    sessionStorage.removeItem(PLACE);
  } catch {
    // Without a storage there is nothing to drop.
  }
}

/** Only what has the shape of a draft's field is taken over. */
function restored(kept: Record<string, unknown>): Draft {
  const fields = Object.entries(EMPTY).map(([name, usual]) => [
    name,
    isLike(kept[name], usual, name) ? kept[name] : usual,
  ]);
  return Object.fromEntries(fields) as Draft;
}

function isLike(value: unknown, usual: unknown, name: string): boolean {
  if (name === "kind") return JOB_KINDS.some((kind) => kind === value);
  if (name === "env")
    return (
      Array.isArray(value) &&
      value.every((one) => isRecord(one) && typeof one.name === "string" && typeof one.value === "string")
    );
  if (name === "mounts") return Array.isArray(value) && value.every(isMount);
  if (name === "parameters" || name === "labels")
    return isRecord(value) && Object.values(value).every((one) => typeof one === "string");
  if (Array.isArray(usual)) return Array.isArray(value) && value.every((one) => typeof one === "string");
  return typeof value === typeof usual;
}

function isMount(value: unknown): value is Mount {
  return (
    isRecord(value) &&
    MOUNT_SOURCES.some((from) => from === value.from) &&
    (value.mode === "ro" || value.mode === "rw") &&
    typeof value.prefetch === "boolean" &&
    (["source", "version", "size", "path"] as const).every((name) => typeof value[name] === "string")
  );
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
