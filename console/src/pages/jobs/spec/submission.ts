/** The request that submits the same job again, made from the job that the API shows. */
import type { Schema } from "@/api/client";
import type { Job } from "@/pages/jobs/actions/possible";
import { mountText, ofMount } from "@/pages/jobs/newjob/draft/mounts";
import { eachPlain, shownValue, type PlainName } from "@/pages/jobs/spec/fields";
import { eachSwitch, sentSwitches } from "@/pages/jobs/spec/switches";
import { sizeText } from "@/texts/sizes";

export type JobBody = Partial<Schema<"JobArray">>;

/** One function for each field of a request that is not plain: TypeScript reports a field of the API that is missing here. */
type Fields = {
  readonly [Name in Exclude<keyof Schema<"JobCreate">, PlainName>]-?: (job: Job) => JobBody[Name] | null;
};

const SECRET = /secret|token|passw|passwd|credential|api_?key|access_?key|private_?key|_key$|^key$|auth/i;
export const HIDDEN = "••••••";

/** In the order in which the fields are written. Values that are null, undefined or empty are left out. */
const FIELDS: Fields = {
  name: (job) => job.name,
  // The server derives the other kinds from the number of nodes and from the preset.
  kind: (job) => (job.kind === "workbench" ? job.kind : undefined),
  preset: (job) => job.preset,
  parameters: (job) => (job.preset === null ? undefined : job.parameters),
  package: (job) => job.package,
  flavor: ownSize((job) => job.flavor),
  gpus: ownSize((job) => (isElastic(job) ? undefined : positive(job.gpus))),
  min_gpus: (job) => job.elastic?.min_gpus,
  max_gpus: (job) => job.elastic?.max_gpus,
  restart_unsaved: (job) => job.restart_unsaved || undefined,
  nodes: (job) => (job.nodes > 1 ? job.nodes : undefined),
  cpus: ownSize((job) => positive(job.cpus)),
  memory: ownSize((job) => (job.memory_bytes > 0 ? sizeText(job.memory_bytes) : undefined)),
  model: ownSize((job) => (job.flavor === null ? job.models : undefined)),
  labels: (job) => ownLabels(job.labels),
  queue: (job) => job.queue,
  ...eachPlain((row) => (job: Job) => shownValue(row, job)),
  ...eachSwitch((row) => (job: Job) => sentSwitches(job)[row.name]),
  retry_on: (job) => job.retry_on,
  image: (job) => job.image,
  mounts: (job) => (job.mounts ?? []).map((mount) => mountText(ofMount(mount))),
  after: (job) => job.after,
  // The API does not show whether a job was submitted with `hold`.
  hold: () => undefined,
  env: (job) => job.env,
  secrets: (job) => job.secrets,
  app: (job) => job.app,
  port: (job) => job.app_port,
  app_name: (job) => job.app_name,
  command: (job) => (job.preset === null ? job.command : undefined),
};

export function submissionOf(job: Job, showSecrets: boolean): JobBody {
  const shown: Job = { ...job, env: shownVariables(job.env, showSecrets) };
  const fields = Object.entries(FIELDS).map(([name, read]) => [name, read(shown)] as const);
  return Object.fromEntries(fields.filter(([, value]) => isGiven(value)));
}

export function looksSecret(name: string): boolean {
  return SECRET.test(name);
}

export function hasSecrets(job: Job): boolean {
  return Object.keys(job.env).some(looksSecret);
}

function shownVariables(env: Job["env"], showSecrets: boolean): Job["env"] {
  return Object.fromEntries(
    Object.entries(env).map(([name, value]) => [name, looksSecret(name) && !showSecrets ? HIDDEN : value]),
  );
}

/** Without the labels that corral sets itself, such as the cluster of a mounted volume. */
export function ownLabels(labels: Job["labels"]): Job["labels"] {
  return Object.fromEntries(Object.entries(labels).filter(([name]) => !name.startsWith("corral.")));
}

/** A package stands for the whole size, so a job of a package has no size of its own. */
function ownSize<T>(read: (job: Job) => T): (job: Job) => T | undefined {
  return (job) => (job.package === null ? read(job) : undefined);
}

function isElastic(job: Job): boolean {
  return (job.elastic ?? null) !== null;
}

function positive(amount: number): number | undefined {
  return amount > 0 ? amount : undefined;
}

function isGiven(value: unknown): boolean {
  if (value === null || value === undefined || value === "") return false;
  return typeof value !== "object" || Object.keys(value).length > 0;
}
