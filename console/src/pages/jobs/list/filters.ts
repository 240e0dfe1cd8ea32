/** The filters of the list of jobs, in the address and for the server. */
import { JOB_KINDS } from "@/api/enumerations";
import type { Query } from "@/api/useAll";

export const NO_FILTERS = {
  q: "",
  state: [] as string[],
  kind: [] as string[],
  user: [] as string[],
  queue: "",
  since: "",
  array: "",
  sort: "-id",
  hide: [] as string[],
} as const;

export interface JobFilters {
  readonly q: string;
  readonly state: readonly string[];
  readonly kind: readonly string[];
  readonly user: readonly string[];
  readonly queue: string;
  readonly since: string;
  readonly array: string;
  readonly sort: string;
  /** Columns that are not shown. */
  readonly hide: readonly string[];
}

/** `task` is not a kind of the API: it stands for the jobs of tasks. */
export const KINDS = [...JOB_KINDS, "task"] as const;
export const TIMES = ["today", "hour", "day", "week", "month"] as const;
type Time = (typeof TIMES)[number];

const SECONDS: Readonly<Record<Exclude<Time, "today">, number>> = {
  hour: 3_600,
  day: 86_400,
  week: 7 * 86_400,
  month: 30 * 86_400,
};
/** A moment that moves with every second would be a new question with every second. */
const STEP_MS = 60_000;

/** The beginning of a time that is named relative to now, or a time that is written out. */
export function sinceOf(time: string, now: number): string | undefined {
  if (time === "") return undefined;
  if (time === "today") return new Date(new Date(now).setHours(0, 0, 0, 0)).toISOString();
  const seconds = SECONDS[time as Exclude<Time, "today">];
  if (seconds === undefined) return Number.isNaN(Date.parse(time)) ? undefined : new Date(time).toISOString();
  return new Date(Math.floor(now / STEP_MS) * STEP_MS - seconds * 1_000).toISOString();
}

/** The server's words for the same, without those that are not set. */
export function queryOf(filters: JobFilters, now: number): Query {
  return {
    q: filters.q || undefined,
    state: filters.state.length > 0 ? filters.state : undefined,
    kind: filters.kind.length > 0 ? filters.kind : undefined,
    user: filters.user.length > 0 ? filters.user : undefined,
    queue: filters.queue || undefined,
    since: sinceOf(filters.since, now),
    array: filters.array || undefined,
  };
}

/** The part of the address that says it; sorting is not a filter. */
export function searchOf(filters: Partial<JobFilters>): Record<string, string | readonly string[]> {
  const found = Object.entries(filters).filter(([name, value]) => name !== "sort" && value.length > 0);
  return Object.fromEntries(
    found.map(([name, value]) => [name, typeof value === "string" || value.length > 1 ? value : (value[0] ?? "")]),
  );
}

export function isSameFilters(left: Partial<JobFilters>, right: Partial<JobFilters>): boolean {
  return canonical(left) === canonical(right);
}

function canonical(filters: Partial<JobFilters>): string {
  const found = Object.entries(filters).filter(
    ([name, value]) => name in NO_FILTERS && name !== "sort" && value.length > 0,
  );
  return JSON.stringify(
    found.map(([name, value]) => [name, typeof value === "string" ? [value] : [...value].sort()]).sort(),
  );
}
