/** The detail of an event as people read it. */
import type { EventView } from "@/pages/audit/useEvents";

export interface Difference {
  readonly field: string;
  readonly before: unknown;
  readonly after: unknown;
}

/** What an event is about: "job" of "job.stopped". */
export function nounOf(event: EventView): string {
  return event.action.split(".")[0] ?? "";
}

/** In one line: "attempt 1 · queue default". */
export function brief(event: EventView): string {
  return Object.entries(event.detail)
    .map(([name, value]) => `${name.replaceAll("_", " ")} ${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(" · ");
}

/**
 * Events of changes tell both sides: `{"before": {…}, "after": {…}}`, or per field `{"priority": {"before": 5, "after": 3}}`
 * or `{"priority": [5, 3]}` under `changes`.
 */
export function differences(detail: Readonly<Record<string, unknown>>): Difference[] {
  const { before, after, changes } = detail;
  if (isRecord(before) && isRecord(after)) {
    const names = new Set([...Object.keys(before), ...Object.keys(after)]);
    return [...names].map((field) => ({ field, before: before[field], after: after[field] })).filter((one) => JSON.stringify(one.before) !== JSON.stringify(one.after));
  }
  return Object.entries(isRecord(changes) ? changes : detail).flatMap(([field, value]) => {
    if (isRecord(value) && "before" in value && "after" in value) return [{ field, before: value.before, after: value.after }];
    if (isRecord(changes) && Array.isArray(value) && value.length === 2) return [{ field, before: value[0], after: value[1] }];
    return [];
  });
}

export function shown(value: unknown): string {
  if (value === undefined || value === null) return "–";
  return typeof value === "string" ? value : JSON.stringify(value);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
