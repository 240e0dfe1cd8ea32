/** Maintenance windows: as they are typed, as the API takes them, and their times on a strip of days. */
import type { Schema } from "@/api/client";
import type { Strip } from "@/pages/scheduling/reservations/calendar";
import { parseDuration, durationText } from "@/texts/durations";
import { localText, momentText } from "@/texts/localTime";

export type MaintenanceWindow = Schema<"MaintenanceView">;

/** Days between occurrences; "" is once. */
export const PERIODS = ["", "1", "7", "14", "28"] as const;
const HOUR_MS = 3_600_000;

export interface Draft {
  name: string;
  nodes: string[];
  /** By the viewer's clock, as the fields show it. */
  since: string;
  until: string;
  every_days: string;
  drain_before: string;
  note: string;
}

export function draftOf(window: MaintenanceWindow | undefined, nodes: readonly string[], now: number): Draft {
  const later = (hours: number) => localText(new Date(now + hours * HOUR_MS).toISOString());
  return {
    name: window?.name ?? "",
    nodes: [...(window?.nodes ?? nodes)],
    since: window === undefined ? later(24) : localText(window.since),
    until: window === undefined ? later(28) : localText(window.until),
    every_days: window?.every_days?.toString() ?? "",
    drain_before: durationText(window?.drain_before_seconds ?? 3600),
    note: window?.note ?? "",
  };
}

export function createOf(draft: Draft): Schema<"MaintenanceCreate"> {
  return {
    name: draft.name,
    nodes: draft.nodes,
    since: momentText(draft.since),
    until: momentText(draft.until),
    every_days: draft.every_days === "" ? null : Number(draft.every_days),
    drain_before: parseDuration(draft.drain_before) ?? 0,
    note: draft.note.trim(),
  };
}

/** Times that are shown to the minute stay as they were to the second. */
export function editOf(draft: Draft, before: MaintenanceWindow): Schema<"MaintenanceEdit"> {
  const { since, until, nodes, every_days, drain_before, note } = createOf(draft);
  return {
    nodes,
    every_days,
    drain_before,
    note,
    ...(draft.since === localText(before.since) ? {} : { since }),
    ...(draft.until === localText(before.until) ? {} : { until }),
  };
}

/** Milliseconds from its beginning to its end; undefined while that makes no sense. */
export function lengthOf({ since, until }: Pick<Draft, "since" | "until">): number | undefined {
  const length = Date.parse(momentText(until)) - Date.parse(momentText(since));
  return length > 0 ? length : undefined;
}

export interface Occurrence {
  readonly window: MaintenanceWindow;
  readonly since: number;
  readonly until: number;
}

/** Every time of the windows that touches the strip; repeated ones keep their time of the day. */
export function occurrencesOf(windows: readonly MaintenanceWindow[], strip: Strip): readonly Occurrence[] {
  return windows.flatMap((window) => {
    const length = Date.parse(window.until) - Date.parse(window.since);
    const found: Occurrence[] = [];
    const begin = new Date(window.since);
    while (begin.getTime() < strip.to) {
      const since = begin.getTime();
      if (since + length > strip.from) found.push({ window, since, until: since + length });
      if (window.every_days === null) break;
      begin.setDate(begin.getDate() + window.every_days);
    }
    return found;
  });
}
