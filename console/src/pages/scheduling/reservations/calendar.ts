/** Where reservations stand on a strip of days: which lane, from where to where, and how many GPUs are set aside together. */
import type { Schema } from "@/api/client";

export type Reservation = Schema<"ReservationView">;

export const SPANS = ["7", "14", "28"] as const;
export type Span = (typeof SPANS)[number];

export interface Strip {
  /** Milliseconds: the first instant of the first day, and of the day after the last, by the viewer's clock. */
  readonly from: number;
  readonly to: number;
  readonly days: readonly number[];
}

/** So many days, beginning with the Monday on or before the day; days are 23 or 25 hours long twice a year. */
export function stripOf(day: Date, count: number): Strip {
  const monday = new Date(day.getFullYear(), day.getMonth(), day.getDate() - ((day.getDay() + 6) % 7));
  const days = Array.from({ length: count + 1 }, (_, at) => atDay(monday, at));
  return { from: days[0] ?? 0, to: days[count] ?? 0, days: days.slice(0, count) };
}

function atDay(first: Date, later: number): number {
  return new Date(first.getFullYear(), first.getMonth(), first.getDate() + later).getTime();
}

/** "2026-01-05", as the address says which week is shown. */
export function dayText(at: number): string {
  const day = new Date(at);
  const two = (value: number) => String(value).padStart(2, "0");
  return `${day.getFullYear()}-${two(day.getMonth() + 1)}-${two(day.getDate())}`;
}

/** The day that an address names, or today. */
export function dayOf(text: string, today: Date): Date {
  const day = /^\d{4}-\d{2}-\d{2}$/.test(text) ? new Date(`${text}T00:00`) : today;
  return Number.isNaN(day.getTime()) ? today : day;
}

export function moved(strip: Strip, days: number): string {
  return dayText(atDay(new Date(strip.from), days));
}

export interface Placed {
  readonly lane: number;
  /** Parts of the strip, 0 … 1. */
  readonly left: number;
  readonly width: number;
  /** It begins before the strip, or goes on after it. */
  readonly isCutLeft: boolean;
  readonly isCutRight: boolean;
}

export interface Bar extends Placed {
  readonly reservation: Reservation;
}

/** The reservations that touch the strip, each in the first lane that is free at its time. */
export function barsOf(reservations: readonly Reservation[], strip: Strip): readonly Bar[] {
  return placed(shown(reservations, strip), timesOf, strip).map(([reservation, place]) => ({ reservation, ...place }));
}

/** Spans of time that touch the strip, in the order of their beginning, each in the first lane that is free at its time. */
export function placed<T>(
  items: readonly T[],
  times: (item: T) => readonly [since: number, until: number],
  strip: Strip,
): readonly (readonly [item: T, place: Placed])[] {
  const ends: number[] = [];
  const length = strip.to - strip.from;
  return items.map((item) => {
    const [since, until] = times(item);
    const [left, right] = [Math.max(since, strip.from), Math.min(until, strip.to)];
    const found = ends.findIndex((end) => end <= left);
    const lane = found < 0 ? ends.length : found;
    ends[lane] = right;
    const place = {
      lane,
      left: (left - strip.from) / length,
      width: (right - left) / length,
      isCutLeft: since < strip.from,
      isCutRight: until > strip.to,
    };
    return [item, place] as const;
  });
}

export interface Level {
  /** Parts of the strip, 0 … 1. */
  readonly from: number;
  readonly to: number;
  readonly gpus: number;
}

/** How many GPUs are set aside at which time of the strip. No GPU is in two reservations at one time. */
export function levelsOf(reservations: readonly Reservation[], strip: Strip): readonly Level[] {
  const found = shown(reservations, strip).map((one) => [...timesOf(one), one.gpu_count] as const);
  const inside = found.flatMap(([since, until]) => [since, until]).filter((at) => at > strip.from && at < strip.to);
  const cuts = [...new Set([strip.from, ...inside, strip.to])].sort((one, other) => one - other);
  const part = (at: number) => (at - strip.from) / (strip.to - strip.from);
  return cuts.slice(0, -1).map((from, at) => ({
    from: part(from),
    to: part(cuts[at + 1] ?? strip.to),
    gpus: found.reduce((sum, [since, until, gpus]) => (since <= from && from < until ? sum + gpus : sum), 0),
  }));
}

function shown(reservations: readonly Reservation[], strip: Strip): readonly Reservation[] {
  return reservations
    .filter((one) => {
      const [since, until] = timesOf(one);
      return since < strip.to && until > strip.from;
    })
    .sort((one, other) => Date.parse(one.since) - Date.parse(other.since) || one.name.localeCompare(other.name));
}

function timesOf({ since, until }: Reservation): readonly [since: number, until: number] {
  return [Date.parse(since), until === null ? Infinity : Date.parse(until)];
}
