/**
 * The one span of time that all charts of the console show, in the address: `?range=24h` for the last day, or
 * `?range=FROM..TO` for a certain time. A page that is opened without it takes the one that was used last.
 */
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback, useMemo } from "react";

export const RANGES = ["1h", "6h", "24h", "7d", "30d"] as const;
export type Preset = (typeof RANGES)[number];

/** The last so many hours or days, or from and to in seconds since 1970. */
export type Range = Preset | readonly [from: number, to: number];

const SECONDS: Readonly<Record<Preset, number>> = {
  "1h": 3_600,
  "6h": 21_600,
  "24h": 86_400,
  "7d": 604_800,
  "30d": 2_592_000,
};
const USUAL: Preset = "1h";
/** Readings are some seconds apart: less than this shows nothing. */
const LEAST_SECONDS = 30;

export function isPreset(text: unknown): text is Preset {
  return RANGES.some((range) => range === text);
}

export function secondsOf(range: Range): number {
  return isPreset(range) ? SECONDS[range] : range[1] - range[0];
}

/** Undefined for a text that is none. */
export function parseRange(text: unknown): Range | undefined {
  if (isPreset(text)) return text;
  if (typeof text !== "string") return undefined;
  const [from = NaN, to = NaN] = text.split("..").map((part) => Date.parse(part) / 1000);
  return from < to ? certain(from, to) : undefined;
}

export function writeRange(range: Range): string {
  if (isPreset(range)) return range;
  return range.map((at) => new Date(at * 1000).toISOString().replace(/\.\d+Z$/, "Z")).join("..");
}

/** Whole seconds, and not too short for the readings. */
export function certain(from: number, to: number): Range {
  const middle = (from + to) / 2;
  const half = Math.max(to - from, LEAST_SECONDS) / 2;
  return [Math.floor(middle - half), Math.ceil(middle + half)];
}

/** The times of a range, as the API takes them. */
export function boundsOf(range: Range, now: number): { readonly since: string; readonly until?: string } {
  if (isPreset(range)) return { since: new Date(now - SECONDS[range] * 1000).toISOString() };
  return { since: new Date(range[0] * 1000).toISOString(), until: new Date(range[1] * 1000).toISOString() };
}

const PLACE = "corral.range";

function lastUsed(): Range {
  try {
    return parseRange(sessionStorage.getItem(PLACE)) ?? USUAL;
  } catch {
    return USUAL; // storage that is switched off
  }
}

/** The range in the address, else the last one used in this tab, else one hour. Back undoes each change. */
export function useRange(): [Range, (range: Range) => void] {
  const search: Record<string, unknown> = useSearch({ strict: false });
  const navigate = useNavigate();
  const range = useMemo(() => parseRange(search.range) ?? lastUsed(), [search.range]);
  const setRange = useCallback(
    (next: Range) => {
      try {
        sessionStorage.setItem(PLACE, writeRange(next));
      } catch {
        // The address has it all the same.
      }
      void navigate({
        to: ".",
        search: (before: Record<string, unknown>) => ({ ...before, range: writeRange(next) }),
      });
    },
    [navigate],
  );
  return [range, setRange];
}
