/** The problems of a draft, by field, with the API's field names. The server checks again. */
import type { Schema } from "@/api/client";
import { JobCreate } from "@/api/limits";
import { VARIABLE_NAME } from "@/api/names";
import { JOB_NAME } from "@/api/names";
import { checkMounts } from "@/pages/jobs/newjob/draft/checkMounts";
import type { Draft } from "@/pages/jobs/newjob/draft/draft";
import { arraySizeOf, cpusOf, gpusOf, wholeOf } from "@/pages/jobs/newjob/draft/quantities";
import type { texts } from "@/pages/jobs/newjob/texts";
import { plainFieldsOf, type PlainField } from "@/pages/jobs/spec/fields";
import { counted } from "@/parts/quotaUse";
import { durationText, parseDuration } from "@/texts/durations";
import { parseSize } from "@/texts/sizes";
import type { Say } from "@/texts/texts";

export interface Finding {
  readonly text: string;
  /** The field is still empty: only shown when the user continues. */
  readonly isMissing?: boolean;
}

export type Findings = Readonly<Record<string, Finding>>;

export interface Facts {
  readonly quota: Schema<"KindQuotaView"> | undefined;
  readonly limits: Schema<"LimitsView">;
  readonly offers: readonly Schema<"PackageView">[] | undefined;
  readonly preset: Schema<"PresetView"> | undefined;
  readonly takenBy: string | undefined;
  readonly hasKeys: boolean;
  /** The volumes that the user may mount; undefined until they are loaded. */
  readonly volumes: readonly Schema<"VolumeView">[] | undefined;
  readonly datasets: readonly Schema<"DatasetView">[] | undefined;
  readonly localQuota: Schema<"HeldView"> | undefined;
}

/** How a check says things: the words, the kind's name, and a size in bytes for people. */
export interface Speech {
  readonly t: Say<typeof texts>;
  readonly kind: string;
  readonly bytes: (value: number) => string;
}

const ADDRESS =
  /^(?:[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?(?::[0-9]{1,5})?\/)?[a-z0-9]+(?:[._/-]+[a-z0-9]+)*(?::\w[\w.-]{0,127})?(?:@sha256:[0-9a-f]{64})?$/;
const MOST_NODES = JobCreate.nodes.most;
const MOST_GPUS = JobCreate.max_gpus.most;

export type Report = (field: string, text: string, isMissing?: boolean) => void;

export function check(draft: Draft, facts: Facts, speech: Speech): Findings {
  const found: Record<string, Finding> = {};
  const report: Report = (field, text, isMissing = false) => {
    found[field] ??= { text, isMissing };
  };
  checkName(draft, facts, speech, report);
  checkImage(draft, speech, report);
  checkMounts(draft.mounts, facts, speech, report);
  if (draft.sizing === "package") checkPackage(draft, facts, speech, report);
  else checkCustomSize(draft, facts, speech, report);
  checkProgram(draft, facts, speech, report);
  checkVariables(draft, speech, report);
  checkOrder(draft, facts, speech, report);
  return found;
}

function checkName({ name, kind, array }: Draft, { takenBy }: Facts, { t }: Speech, report: Report): void {
  if (name === "") {
    if (kind === "workbench") report("name", t("nameMissing"), true);
    else if (array !== "") report("name", t("nameForArray"), true);
  } else if (/^job-\d+$/.test(name)) report("name", t("nameGiven"));
  else if (!JOB_NAME.test(name)) report("name", t("nameBad", { n: name.length }));
  else if (takenBy !== undefined && array === "") report("name", t("nameTaken", { id: takenBy }));
}

function checkImage({ imageFrom, image }: Draft, { t }: Speech, report: Report): void {
  if (imageFrom === "list" && image === "") report("image", t("imageMissing"), true);
  if (imageFrom === "address" && image.trim() === "") report("image", t("addressMissing"), true);
  else if (imageFrom === "address" && !ADDRESS.test(image.trim())) report("image", t("addressBad"));
}

function checkPackage(draft: Draft, facts: Facts, speech: Speech, report: Report): void {
  const nodes = checkNodes(draft, speech, report);
  if (draft.package === "") return report("package", speech.t("packageMissing"), true);
  const chosen = facts.offers?.find((offer) => offer.name === draft.package);
  if (facts.offers !== undefined && chosen === undefined) return report("package", speech.t("packageGone"));
  if (chosen !== undefined)
    checkQuota(
      { gpus: chosen.gpus * nodes, cpus: chosen.cpus * nodes, memory: chosen.memory_bytes * nodes },
      facts,
      speech,
      (_, text) => report("package", text),
    );
}

function checkCustomSize(draft: Draft, facts: Facts, speech: Speech, report: Report): void {
  const { t } = speech;
  const nodes = checkNodes(draft, speech, report);
  const isElastic = draft.isElastic && draft.kind !== "workbench";
  const gpus = isElastic ? checkElastic(draft, speech, report) : gpusOf(draft.gpus);
  if (!isElastic && draft.gpus.trim() === "" && draft.kind !== "preset") report("gpus", t("gpusMissing"), true);
  else if (!isElastic && draft.gpus.trim() !== "" && gpus === undefined) report("gpus", t("gpusBad"));
  const cpus = draft.cpus.trim() === "" ? undefined : cpusOf(draft.cpus);
  if (draft.cpus.trim() !== "" && cpus === undefined) report("cpus", t("cpusBad"));
  const memory = draft.memory.trim() === "" ? undefined : parseSize(draft.memory);
  if (draft.memory.trim() !== "" && memory === undefined) report("memory", t("sizeBad"));
  const asked = {
    gpus: (gpus ?? facts.preset?.gpus ?? 0) * nodes,
    cpus: (cpus ?? facts.preset?.cpus ?? 0) * nodes,
    memory: (memory ?? facts.preset?.memory_bytes ?? 0) * nodes,
  };
  checkQuota(asked, facts, speech, (what, text) => report(what === "gpus" && isElastic ? "min_gpus" : what, text));
}

function checkNodes({ kind, nodes }: Draft, { t }: Speech, report: Report): number {
  if (kind !== "distributed") return 1;
  const count = wholeOf(nodes, 2, MOST_NODES);
  if (count === undefined) report("nodes", t("wholeBad", { least: 2, most: MOST_NODES }));
  return count ?? 1;
}

function checkElastic(draft: Draft, { t }: Speech, report: Report): number | undefined {
  const least = draft.min_gpus.trim() === "" ? 1 : wholeOf(draft.min_gpus, 1, MOST_GPUS);
  const most = draft.max_gpus.trim() === "" ? undefined : wholeOf(draft.max_gpus, 1, MOST_GPUS);
  if (least === undefined) report("min_gpus", t("wholeBad", { least: 1, most: MOST_GPUS }));
  if (draft.max_gpus.trim() !== "" && most === undefined)
    report("max_gpus", t("wholeBad", { least: 1, most: MOST_GPUS }));
  if (least !== undefined && most !== undefined && least > most)
    report("max_gpus", t("minOverMax", { min: least, max: most }));
  if (draft.min_gpus.trim() === "" && draft.max_gpus.trim() === "") report("min_gpus", t("gpusMissing"), true);
  return least;
}

interface Asked {
  readonly gpus: number;
  readonly cpus: number;
  readonly memory: number;
}

/** Checks a size against the quota, and the resources that are held already. */
function checkQuota(
  asked: Asked,
  facts: Facts,
  { t, kind, bytes }: Speech,
  report: (what: keyof Asked, text: string) => void,
): void {
  const plain = (value: number) => String(Math.round(value * 1000) / 1000);
  const lines = [
    ["gpus", asked.gpus, facts.quota?.gpus, plain],
    ["cpus", asked.cpus, facts.quota?.cpus, plain],
    ["memory", asked.memory, facts.quota?.memory_bytes, bytes],
  ] as const;
  for (const [what, amount, held, text] of lines) {
    const limit = held?.limit ?? null;
    if (held === undefined || limit === null || amount === 0) continue;
    const left = Math.max(0, limit - counted(held));
    if (amount > left)
      report(what, t("overQuota", { asked: text(amount), kind, left: text(left), limit: text(limit) }));
  }
  const most = facts.limits.max_gpus_per_job;
  if (most !== null && asked.gpus > most) report("gpus", t("overJobLimit", { asked: plain(asked.gpus), limit: most }));
}

function checkProgram(draft: Draft, facts: Facts, speech: Speech, report: Report): void {
  const { t } = speech;
  if (draft.kind === "preset") return checkParameters(draft, facts, speech, report);
  if (draft.kind === "workbench") {
    if (draft.ssh && !facts.hasKeys) report("ssh", t("sshNoKey"));
    const wrong = wrongDuration(draft.idle_stop, t, 1);
    if (wrong !== undefined) report("idle_stop", wrong);
  } else if (draft.command.trim() === "") report("command", t("commandMissing"), true);
}

function checkParameters(draft: Draft, { preset }: Facts, { t }: Speech, report: Report): void {
  if (draft.preset === "") return report("preset", t("presetMissing"), true);
  for (const parameter of preset?.parameters ?? []) {
    const value = (draft.parameters[parameter.name] ?? "").trim();
    const field = `parameters.${parameter.name}`;
    if (value === "") {
      if (parameter.default === null) report(field, t("parameterMissing"), true);
      continue;
    }
    if (parameter.type !== "int" && parameter.type !== "float") continue;
    const number = Number(value);
    if (!Number.isFinite(number)) report(field, t("parameterNumber"));
    else if (parameter.type === "int" && !Number.isInteger(number)) report(field, t("parameterWhole"));
    else if (isOutside(number, parameter.min, parameter.max)) report(field, rangeText(parameter, t));
  }
}

export function rangeText({ min, max }: Pick<Schema<"ParameterView">, "min" | "max">, t: Say<typeof texts>): string {
  if (min !== null && max !== null) return t("parameterRange", { least: min, most: max });
  if (min !== null) return t("atLeast", { least: min });
  return max === null ? "" : t("atMost", { most: max });
}

function isOutside(number: number, least: number | null, most: number | null): boolean {
  return (least !== null && number < least) || (most !== null && number > most);
}

function checkVariables({ env }: Draft, { t }: Speech, report: Report): void {
  const seen = new Set<string>();
  for (const [at, { name, value }] of env.entries()) {
    if (name === "") {
      if (value !== "") report(`env.${at}`, t("variableMissing"));
    } else if (!VARIABLE_NAME.test(name)) report(`env.${at}`, t("variableBad"));
    else if (seen.has(name)) report(`env.${at}`, t("variableTwice"));
    seen.add(name);
  }
}

function checkOrder(draft: Draft, { limits }: Facts, speech: Speech, report: Report): void {
  const { t } = speech;
  for (const row of plainFieldsOf(draft.kind === "workbench")) {
    const wrong = wrongWith(row, draft[row.name], t);
    if (wrong !== undefined) report(row.name, wrong);
  }
  const seconds = parseDuration(draft.time);
  if (seconds === 0) report("time", t("durationZero"));
  if (seconds !== undefined && limits.max_seconds !== null && seconds > limits.max_seconds)
    report("time", t("overTime", { limit: durationText(limits.max_seconds) }));
  if (draft.kind === "workbench") return;
  if (draft.array.trim() !== "" && arraySizeOf(draft.array, draft.pack) === undefined) report("array", t("arrayBad"));
}

/** The problem of a plain field's typed value; undefined if it is valid, or empty. */
export function wrongWith(row: PlainField, typed: string, t: Say<typeof texts>): string | undefined {
  const text = typed.trim();
  if (text === "") return undefined;
  const { least = 0, most } = row;
  switch (row.type) {
    case "path":
      return text.startsWith("/") ? undefined : t("pathBad");
    case "whole":
      return wholeOf(text, least, most ?? Number.MAX_SAFE_INTEGER) === undefined
        ? t("wholeBad", { least, most: most ?? "…" })
        : undefined;
    case "duration":
      return wrongDuration(text, t, least, most);
    case "lines":
      return most !== undefined && [...text].length > most ? t("textLong", { most }) : undefined;
  }
}

function wrongDuration(text: string, t: Say<typeof texts>, least = 0, most?: number): string | undefined {
  if (text.trim() === "") return undefined;
  const seconds = parseDuration(text);
  if (seconds === undefined) return t("durationBad");
  if (seconds >= least && (most === undefined || seconds <= most)) return undefined;
  return most === undefined
    ? t("durationZero")
    : t("durationRange", { least: durationText(least), most: durationText(most) });
}
