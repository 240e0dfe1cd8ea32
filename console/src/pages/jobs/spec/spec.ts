/** A job in the words in which it can be submitted again: as a job file, and as a command. */
import type { Job } from "@/pages/jobs/actions/possible";
import { mountText, ofMount } from "@/pages/jobs/newjob/mounts";

export type Value = string | number | boolean | readonly string[] | Readonly<Record<string, string>>;
export type Spec = readonly (readonly [key: string, value: Value])[];

const SECRET = /secret|token|passw|passwd|credential|api_?key|access_?key|private_?key|_key$|^key$|auth/i;
export const HIDDEN = "••••••";

export function looksSecret(name: string): boolean {
  return SECRET.test(name);
}

export function hasSecrets(job: Job): boolean {
  return Object.keys(job.env).some(looksSecret);
}

/** Only what was asked for: what is as always is left out. */
export function specOf(job: Job, showSecrets: boolean): Spec {
  const elastic = job.elastic ?? undefined;
  const isPicked = job.package !== null;
  const env = Object.fromEntries(
    Object.entries(job.env).map(([name, value]) => [name, looksSecret(name) && !showSecrets ? HIDDEN : value]),
  );
  const entries: [string, Value | null | undefined | false][] = [
    ["name", job.name],
    ["kind", job.kind === "workbench" && job.kind],
    ["preset", job.preset],
    ["parameters", job.preset !== null && job.parameters],
    ["package", job.package],
    ["flavor", !isPicked && job.flavor],
    ["gpus", !isPicked && elastic === undefined && job.gpus > 0 && job.gpus],
    ["min-gpus", elastic?.min_gpus],
    ["max-gpus", elastic?.max_gpus],
    ["nodes", job.nodes > 1 && job.nodes],
    ["cpus", !isPicked && job.cpus > 0 && job.cpus],
    ["memory", !isPicked && job.memory_bytes > 0 && size(job.memory_bytes)],
    ["model", !isPicked && job.flavor === null && job.models],
    ["label", ownLabels(job.labels)],
    ["queue", job.queue],
    ["priority", job.priority],
    ["time", job.time_limit_seconds !== null && duration(job.time_limit_seconds)],
    ["grace", duration(job.grace_seconds)],
    ["retries", job.max_retries],
    ["checkpoint-interval", job.checkpoint_interval_seconds !== null && duration(job.checkpoint_interval_seconds)],
    ["image", job.image],
    ["venv", job.venv],
    ["workdir", job.workdir],
    ["mounts", (job.mounts ?? []).map((mount) => mountText(ofMount(mount)))],
    ["after", job.after],
    ["env", env],
    ["command", job.preset === null && job.command],
  ];
  return entries.flatMap(([key, value]) => (isGiven(value) ? [[key, value] as const] : []));
}

/** Without those that corral gives by itself, such as the cluster of what is mounted. */
export function ownLabels(labels: Job["labels"]): Job["labels"] {
  return Object.fromEntries(Object.entries(labels).filter(([name]) => !name.startsWith("corral.")));
}

function isGiven(value: Value | null | undefined | false): value is Value {
  if (value === null || value === undefined || value === false || value === "") return false;
  return typeof value !== "object" || (Array.isArray(value) ? value.length > 0 : Object.keys(value).length > 0);
}

export function yamlOf(spec: Spec): string {
  return `${spec.map(([key, value]) => yamlEntry(key, value)).join("\n")}\n`;
}

function yamlEntry(key: string, value: Value): string {
  if (typeof value !== "object") return `${key}: ${yamlScalar(value)}`;
  if (Array.isArray(value)) return [`${key}:`, ...value.map((one: string) => `  - ${yamlScalar(one)}`)].join("\n");
  return [`${key}:`, ...Object.entries(value).map(([name, one]) => `  ${name}: ${yamlScalar(one)}`)].join("\n");
}

/** Plain where nobody could read it otherwise: no number, no yes or no, nothing that means something to YAML. */
function yamlScalar(value: string | number | boolean): string {
  if (typeof value !== "string") return String(value);
  const isPlain =
    /^[A-Za-z_./][\w./@%+=:-]*$/.test(value) &&
    !/^(y|n|yes|no|true|false|on|off|null|~|\.inf|\.nan)$/i.test(value) &&
    !value.endsWith(":");
  // A JSON text is a YAML text.
  return isPlain ? value : JSON.stringify(value);
}

/** `undefined` for a job made from a preset: the command line has no flags for that, a file has. */
export function commandOf(spec: Spec): string | undefined {
  if (spec.some(([key]) => key === "preset")) return undefined;
  const flags = spec.filter(([key]) => key !== "command").flatMap(([key, value]) => flagsOf(key, value));
  const command = spec.find(([key]) => key === "command")?.[1];
  const program = Array.isArray(command) ? command.map(shellWord).join(" ") : "";
  return `${["corral submit", ...flags].join(" \\\n  ")} \\\n  -- ${program}`;
}

/** The flag where it is not the word of the file. */
const FLAGS: Readonly<Record<string, string>> = { mounts: "mount" };

function flagsOf(word: string, value: Value): string[] {
  const key = FLAGS[word] ?? word;
  if (typeof value !== "object") return [`--${key} ${shellWord(String(value))}`];
  if (Array.isArray(value)) return value.map((one: string) => `--${key} ${shellWord(one)}`);
  return Object.entries(value).map(([name, one]) => `--${key} ${shellWord(`${name}=${one}`)}`);
}

export function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

function duration(seconds: number): string {
  const [unit, one] = (
    [
      ["h", 3_600],
      ["m", 60],
    ] as const
  ).find(([, length]) => seconds >= length && seconds % length === 0) ?? ["s", 1];
  return `${seconds / one}${unit}`;
}

function size(bytes: number): string {
  const [unit, one] = (
    [
      ["GiB", 2 ** 30],
      ["MiB", 2 ** 20],
      ["KiB", 2 ** 10],
    ] as const
  ).find(([, length]) => bytes % length === 0) ?? ["", 1];
  return `${bytes / one}${unit}`;
}
