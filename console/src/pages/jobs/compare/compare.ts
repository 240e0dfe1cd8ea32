/** The jobs that are compared, and the fields in which they differ. */
import type { Job } from "@/pages/jobs/actions/possible";
import { submissionOf } from "@/pages/jobs/spec/submission";

export const LEAST_JOBS = 2;
export const MOST_JOBS = 5;

export interface FieldRow {
  readonly field: string;
  /** One for each job; empty where the job has none. */
  readonly values: readonly string[];
  readonly differs: boolean;
}

/** The ids in an address (`?job=j-1&job=j-2`), each once and not too many. */
export function idsOf(given: readonly string[]): readonly string[] {
  return [...new Set(given.filter((id) => id !== ""))].slice(0, MOST_JOBS);
}

/** The fields that the jobs were submitted with. Names of one's own are no difference; secrets are not shown. */
export function fieldRows(jobs: readonly Job[]): readonly FieldRow[] {
  const bodies = jobs.map((job) => flat(submissionOf(job, false)));
  const fields = [...new Set(bodies.flatMap((body) => [...body.keys()]))].filter((field) => field !== "name");
  return fields.map((field) => {
    const values = bodies.map((body) => body.get(field) ?? "");
    return { field, values, differs: new Set(values).size > 1 };
  });
}

/** Maps, such as variables and labels, as one field for each key. */
function flat(body: object): Map<string, string> {
  const found = new Map<string, string>();
  for (const [name, value] of Object.entries(body) as [string, unknown][]) {
    if (typeof value === "object" && value !== null && !Array.isArray(value)) {
      for (const [key, inner] of Object.entries(value)) found.set(`${name}.${key}`, textOf(inner));
    } else found.set(name, textOf(value));
  }
  return found;
}

function textOf(value: unknown): string {
  if (Array.isArray(value)) return value.map(textOf).join(" ");
  return typeof value === "object" && value !== null ? JSON.stringify(value) : String(value);
}

/** Seconds that the job waited before its first start so far, and that it ran. */
export function timesOf(job: Job, now: number): { waited: number | null; ran: number | null } {
  const created = Date.parse(job.queued_at ?? job.created_at);
  const started = job.started_at === null ? undefined : Date.parse(job.started_at);
  const ended = job.ended_at === null ? now : Date.parse(job.ended_at);
  return {
    waited: Math.max(0, ((started ?? ended) - created) / 1000),
    ran: started === undefined ? null : Math.max(0, (ended - started) / 1000),
  };
}
