/** The detail of an event as people read it. */
import type { EventView } from "@/pages/people/audit/useEvents";

export interface Difference {
  readonly field: string;
  readonly before: unknown;
  readonly after: unknown;
}

export type Detail = Readonly<Record<string, unknown>>;

/** The subject of an event: "job" of "job.stopped". */
export function nounOf(event: EventView): string {
  return event.action.split(".")[0] ?? "";
}

/** In one line: "attempt 1 · queue default". */
export function brief(event: EventView): string {
  return Object.entries(event.detail)
    .map(([name, value]) => `${name.replaceAll("_", " ")} ${formatValue(value)}`)
    .join(" · ");
}

/** The fields of an event with their old and new value: `{"priority": {"was": 5, "is": 3}}`. */
export function differences(detail: Detail): Difference[] {
  return Object.entries(detail).flatMap(([field, value]) =>
    isDifference(value) ? [{ field, before: value.was, after: value.is }] : [],
  );
}

export interface Fact {
  readonly field: string;
  readonly value: unknown;
  /** Named by the event as what was changed. */
  readonly isChanged: boolean;
}

/** The rest, field by field. Edits of larger things tell the whole of them, and in `changed` what is new about it. */
export function facts(detail: Detail): Fact[] {
  const changed = Array.isArray(detail.changed) ? detail.changed.map(String) : [];
  return Object.entries(detail)
    .filter(([field, value]) => field !== "changed" && !isDifference(value))
    .map(([field, value]) => ({ field, value, isChanged: changed.includes(field) }));
}

export function shown(value: unknown): string {
  if (value === undefined || value === null) return "–";
  return formatValue(value);
}

function isDifference(value: unknown): value is { was: unknown; is: unknown } {
  return typeof value === "object" && value !== null && "was" in value && "is" in value;
}

/** Formats a value for users: numbers to the thousandth, other values as they are stored. */
function formatValue(value: unknown): string {
  if (typeof value === "string") return value;
  if (typeof value === "number") return String(Math.round(value * 1000) / 1000);
  return JSON.stringify(value);
}
