/** The request made from a draft. Empty fields are left out, so that the installation's defaults apply. */
import type { Schema } from "@/api/client";
import { complete } from "@/api/complete";
import { commandOf } from "@/pages/jobs/newjob/draft/commandline";
import type { Draft } from "@/pages/jobs/newjob/draft/draft";
import { mountText } from "@/pages/jobs/newjob/draft/mounts";
import { plainFieldsOf, sentValue } from "@/pages/jobs/spec/fields";
import { sentSwitches } from "@/pages/jobs/spec/switches";
import type { JobBody } from "@/pages/jobs/spec/submission";

function size(draft: Draft): JobBody {
  if (draft.sizing === "package") return { package: draft.package || undefined };
  const gpus =
    draft.isElastic && draft.kind !== "workbench"
      ? {
          min_gpus: amount(draft.min_gpus),
          max_gpus: amount(draft.max_gpus),
          restart_unsaved: draft.restart_unsaved || undefined,
        }
      : { gpus: amount(draft.gpus) };
  return {
    ...gpus,
    cpus: amount(draft.cpus),
    memory: draft.memory.trim() || undefined,
    flavor: draft.flavor || undefined,
  };
}

function surroundings(draft: Draft): JobBody {
  const env = Object.fromEntries(draft.env.filter((one) => one.name !== "").map((one) => [one.name, one.value]));
  return {
    image: draft.imageFrom === "node" ? undefined : draft.image.trim() || undefined,
    mounts: draft.mounts.length === 0 ? undefined : draft.mounts.map(mountText),
    env: Object.keys(env).length === 0 ? undefined : env,
    secrets: listed(draft.secrets),
  };
}

function plain(draft: Draft): JobBody {
  const rows = plainFieldsOf(draft.kind === "workbench");
  return Object.fromEntries(rows.map((row) => [row.name, sentValue(row, draft[row.name])]));
}

/** The program and its retries; corral provides the program of a workbench. */
function program(draft: Draft): JobBody {
  const parameters = Object.fromEntries(Object.entries(draft.parameters).filter(([, value]) => value !== ""));
  const runs =
    draft.kind === "preset"
      ? { preset: draft.preset || undefined, parameters: Object.keys(parameters).length === 0 ? undefined : parameters }
      : { kind: draft.kind, command: [...commandOf(draft.command).words] };
  return {
    ...runs,
    nodes: draft.kind === "distributed" ? amount(draft.nodes) : undefined,
    ...sentSwitches(draft),
    retry_on: draft.retry_on.trim() || undefined,
    app: draft.app.trim() || undefined,
    port: amount(draft.port),
    app_name: draft.app_name.trim() || undefined,
    after: draft.after.length === 0 ? undefined : [...draft.after],
  };
}

/** The fields of jobs of every kind. */
function common(draft: Draft): JobBody {
  const labels = Object.keys(draft.labels).length === 0 ? undefined : draft.labels;
  const order = { queue: draft.queue || undefined, hold: draft.hold || undefined };
  return { ...size(draft), model: models(draft), labels, ...surroundings(draft), ...order, ...plain(draft) };
}

/** For everything but workbenches. In the order in which a person reads it. */
export function jobBody(draft: Draft): JobBody {
  return given({
    name: draft.name || undefined,
    ...program(draft),
    ...common(draft),
    array: draft.array.trim() || undefined,
    pack: (draft.pack && draft.array.trim() !== "") || undefined,
  });
}

export function workbenchBody(draft: Draft): Schema<"WorkbenchCreate"> {
  const offers = { jupyter: draft.jupyter, ssh: draft.ssh, idle_stop: draft.idle_stop.trim() || undefined };
  return complete<Schema<"WorkbenchCreate">>(given<object>({ name: draft.name, ...offers, ...common(draft) }));
}

/** The body of a dry run: one job, also for an array, and also while there is no command yet. */
export function planBody(draft: Draft): Schema<"JobCreate"> {
  const runs: JobBody = draft.kind === "workbench" ? { kind: "workbench" } : program(draft);
  const body: JobBody = { name: draft.name || undefined, ...runs, ...common(draft) };
  const hasCommand = (body.command ?? []).length > 0 || draft.kind === "preset";
  return complete<Schema<"JobCreate">>(given({ ...body, ...(hasCommand ? {} : { command: ["true"] }) }));
}

function models(draft: Draft): string[] | undefined {
  return draft.sizing === "package" || draft.flavor !== "" || draft.model.length === 0 ? undefined : [...draft.model];
}

function listed(text: string): string[] | undefined {
  const names = text
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
  return names.length === 0 ? undefined : names;
}

function amount(text: string): number | undefined {
  return text.trim() === "" ? undefined : Number(text);
}

function given<T extends object>(body: T): T {
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined)) as T;
}
