/** Events in the time range of charts: alerts that fired, and starts of jobs if they are few. */
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";

import { api, sent, type Schema } from "@/api/client";
import type { Mark } from "@/charts/LineChart";
import { boundsOf, isPreset, writeRange, type Range } from "@/charts/ranges";
import { texts } from "@/charts/texts";
import { useTexts, type Say } from "@/texts/texts";

type Alert = Schema<"AlertView">;
type Event = Schema<"EventView">;

/** More lines than this would hide the curves. */
export const MOST_MARKS = 40;
/** An alert may have begun before the range, and fire within it. */
const PENDING_MS = 3_600_000;
const AGAIN_MS = 30_000;
const COLORS = { critical: "#e5484d", warning: "#f2a33c", info: "#7f8aa0" } as const;
const START = "#4c8dff";

/** The marks of everything, or of one node or GPU (then alerts only: starts are not recorded by place). */
export function useMarks(range: Range, subject?: string): readonly Mark[] | undefined {
  const t = useTexts(texts);
  const { data } = useQuery({
    queryKey: ["marks", writeRange(range), subject],
    queryFn: () => fetchMarks(range, subject),
    refetchInterval: isPreset(range) ? AGAIN_MS : false,
    placeholderData: (before) => before,
  });
  return useMemo(() => (data === undefined ? undefined : marksOf(data.alerts, data.starts, t)), [data, t]);
}

async function fetchMarks(range: Range, subject: string | undefined) {
  const bounds = boundsOf(range, Date.now());
  const alerts = sent(api.GET("/alerts", { params: { query: alertsOf(bounds, subject) } }));
  const starts =
    subject === undefined
      ? sent(api.GET("/events", { params: { query: { ...bounds, action: "job.running", limit: MOST_MARKS + 1 } } }))
      : undefined;
  return { alerts: (await alerts).items, starts: (await starts)?.items ?? [] };
}

/** The alerts of the range: newer and pending ones would take the places of those that are shown. */
export function alertsOf(bounds: ReturnType<typeof boundsOf>, subject: string | undefined) {
  const since = new Date(Date.parse(bounds.since) - PENDING_MS).toISOString();
  return { ...bounds, since, state: ["firing" as const, "resolved" as const], subject, limit: MOST_MARKS };
}

/** Alerts first: they are why people look. Starts are left out where they are too many. */
export function marksOf(
  alerts: readonly Pick<Alert, "fired_at" | "severity" | "text">[],
  starts: readonly Pick<Event, "at" | "subject">[],
  t: Say<typeof texts>,
): readonly Mark[] {
  const fired = alerts
    .filter((alert) => alert.fired_at !== null)
    .slice(0, MOST_MARKS)
    .map((alert) => ({
      at: Date.parse(alert.fired_at ?? "") / 1000,
      label: t("alertMark", { text: alert.text }),
      color: COLORS[alert.severity],
    }));
  if (fired.length + starts.length > MOST_MARKS) return fired;
  return [
    ...fired,
    ...starts.map((start) => ({
      at: Date.parse(start.at) / 1000,
      label: t("startMark", { job: start.subject }),
      color: START,
    })),
  ];
}
