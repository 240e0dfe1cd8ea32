/** The detail of an event as people read it. */
import type { Language } from "@/app/preferences";
import { fields } from "@/pages/people/audit/fields.texts";
import type { EventView } from "@/pages/people/audit/useEvents";
import type { Format } from "@/texts/format";
import { sayOr } from "@/texts/texts";

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

/** In one line: "attempt 1 · queue default". Empty values are left out. */
export function brief(event: EventView, language: Language, format: Format): string {
  return Object.entries(event.detail)
    .map(([name, value]) => [name, valueText(name, value, format)] as const)
    .filter(([, text]) => text !== "")
    .map(([name, text]) => `${fieldName(name, language)} ${text}`)
    .join(" · ");
}

/** The name of a field, as people say it. */
export function fieldName(name: string, language: Language): string {
  return sayOr(fields, language)(name, name.replaceAll("_", " "));
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

export function shown(name: string, value: unknown, format: Format): string {
  return valueText(name, value, format) || "–";
}

function isDifference(value: unknown): value is { was: unknown; is: unknown } {
  return typeof value === "object" && value !== null && "was" in value && "is" in value;
}

/** Fields whose numbers are times, in seconds since 1970. */
const TIME = /(^|_)(at|before|by|since|until)$/;
/** In 2001: no number of anything else is larger. */
const LEAST_TIME = 1e9;

function numberText(name: string, value: number, format: Format): string {
  if (name.endsWith("_seconds")) return format.duration(value);
  if (TIME.test(name) && value > LEAST_TIME) return format.dateTime(value * 1000);
  return String(Math.round(value * 1000) / 1000);
}

/** A value in words: units by the name of the field, lists with commas. */
function valueText(name: string, value: unknown, format: Format): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "string") return value;
  if (typeof value === "number") return numberText(name, value, format);
  if (isDifference(value)) return `${shown(name, value.was, format)} → ${shown(name, value.is, format)}`;
  if (Array.isArray(value)) return value.map((one: unknown) => valueText("", one, format)).join(", ");
  if (typeof value !== "object") return String(value);
  return Object.entries(value)
    .map(([key, one]) => [key, valueText(key, one, format)] as const)
    .map(([key, text]) => (text === "" ? key : `${key}: ${text}`))
    .join("; ");
}
