/** A job's request as text for the other interfaces: a job file (`job.yaml`) and a command line. */
import type { Schema } from "@/api/client";
import { quoted } from "@/pages/jobs/newjob/commandline";
import { plainFieldsOf } from "@/pages/jobs/spec/fields";
import type { JobBody } from "@/pages/jobs/spec/submission";

type Value = string | number | boolean | readonly string[] | Readonly<Record<string, unknown>>;

const FIELDS = plainFieldsOf(false);
/** Flags of repeatable options are singular; a job file holds the whole list under the API's name. */
const FLAGS: Readonly<Record<string, string>> = { labels: "label", mounts: "mount" };
/** The fields that `corral preset run` has flags for. */
const PRESET_FLAGS = new Set<string>([
  "name",
  "preset",
  "parameters",
  "gpus",
  "cpus",
  "memory",
  "model",
  "package",
  "queue",
  "env",
  "mounts",
  "hold",
  ...FIELDS.filter((row) => row.isForPresetRun === true).map((row) => row.name),
]);

// ------------------------------------------------------------------------------------------------ job.yaml

export function yamlOf(body: JobBody): string {
  return entriesOf(body)
    .map(([name, value]) => `${fileKey(name)}:${yamlValue(name === "command" ? shellLine(value) : value)}\n`)
    .join("");
}

/** The API's `max_gpus` is `max-gpus` in a file and `--max-gpus` on a command line. */
function fileKey(name: string): string {
  return FIELDS.find((row) => row.name === name)?.flag ?? name.replaceAll("_", "-");
}

/** A text is a line for the shell, a list a program and its arguments. */
function shellLine(command: Value): Value {
  return Array.isArray(command) && command[0] === "/bin/sh" && command[1] === "-c" && command.length === 3
    ? String(command[2])
    : command;
}

/** The value with the space or line break that separates it from its key. */
function yamlValue(value: Value): string {
  if (typeof value === "number" || typeof value === "boolean") return ` ${String(value)}`;
  if (typeof value === "string") return ` ${yamlText(value)}`;
  if (Array.isArray(value)) return ` [${value.map((one) => yamlText(String(one))).join(", ")}]`;
  return Object.entries(value)
    .map(([name, one]) => `\n  ${yamlText(name)}: ${yamlText(String(one))}`)
    .join("");
}

const PLAIN = /^(?:[A-Za-z_][\w./-]*|\d+(?:\.\d+)?(?:w|d|h|m|s|[KMGTP]i?B?))$/;
const NOT_A_TEXT = /^(?:y|n|yes|no|on|off|true|false|null)$/i;

/** Plain where YAML takes it as a text, otherwise in double quotes. */
function yamlText(text: string): string {
  if (PLAIN.test(text) && !NOT_A_TEXT.test(text)) return text;
  return JSON.stringify(text).replace(
    /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g,
    (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

// ------------------------------------------------------------------------------------------------ command lines

export function commandLineOf(body: JobBody): string {
  if (body.preset === undefined || body.preset === null) {
    const { command, ...rest } = body;
    return wrapped(["corral submit", ...flagsOf(rest)], command ?? []);
  }
  const { preset, parameters, ...rest } = body;
  if (Object.keys(body).some((name) => !PRESET_FLAGS.has(name)))
    return `corral submit -f /dev/stdin <<'EOF'\n${yamlOf(body)}EOF`;
  const filled = Object.entries(parameters ?? {}).map(([name, value]) => `-p ${quoted(`${name}=${String(value)}`)}`);
  return wrapped([`corral preset run ${quoted(preset)}`, ...filled, ...flagsOf(rest)], []);
}

export function workbenchLineOf(body: Schema<"WorkbenchCreate">): string {
  const { name, jupyter, ssh, ...rest } = body;
  const offers = [...(jupyter ? [] : ["--no-jupyter"]), ...(ssh ? ["--ssh"] : [])];
  return wrapped([`corral workbench create ${quoted(name)}`, ...offers, ...flagsOf(rest)], []);
}

function flagsOf(body: object): string[] {
  return entriesOf(body).flatMap(([name, value]) => {
    const flag = `--${FLAGS[name] ?? fileKey(name)}`;
    if (value === true) return [flag];
    if (value === false) return [flag.replace("--", "--no-")];
    if (Array.isArray(value)) return value.map((one) => `${flag} ${quoted(String(one))}`);
    if (typeof value === "object")
      return Object.entries(value).map(([key, one]) => `${flag} ${quoted(`${key}=${String(one)}`)}`);
    return [`${flag} ${quoted(String(value))}`];
  });
}

const LINE = 78;

/** Lines that a shell reads as one, none much longer than a terminal is wide. */
function wrapped(parts: readonly string[], command: readonly string[]): string {
  const all = command.length === 0 ? [...parts] : [...parts, `-- ${command.map(quoted).join(" ")}`];
  const lines: string[] = [];
  for (const part of all) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + part.length + 1 <= LINE) lines[lines.length - 1] = `${last} ${part}`;
    else lines.push(last === undefined ? part : `  ${part}`);
  }
  return lines.join(" \\\n");
}

function entriesOf(body: object): [string, Value][] {
  return Object.entries(body).filter((entry): entry is [string, Value] => entry[1] !== undefined && entry[1] !== null);
}
