/** New items of the inbox, out of the event stream: only events about the user make the inbox old. */
import type { ServerEvent } from "@/api/events";
import { remembered } from "@/app/storage";

/** Where this browser remembers whether it shows notifications. */
export const BROWSER_INBOX = "inbox.browser";

/** The events that the server lists in an inbox. */
const ACTIONS: ReadonlySet<string> = new Set([
  "job.running",
  "job.completed",
  "job.stopped",
  "job.failed",
  "job.preempting",
  "job.moving",
  "job.starts-earlier",
  "job.starts-later",
  "job.idle-warned",
  "job.idle-stopped",
  "job.hung",
  "job.slow",
  "volume.nearly-full",
  "quota.nearly-full",
  "budget.soft-limit-reached",
  "budget.hard-limit-reached",
  "volume.share-received",
  "dataset.share-received",
  "node.drained",
]);

export function wantsBrowser(): boolean {
  return remembered(BROWSER_INBOX, (value) => typeof value === "boolean") === true;
}

/** The subject of an event that belongs into the inbox of this user. */
export function newItem(event: ServerEvent, user: string): string | undefined {
  if (!ACTIONS.has(event.name)) return undefined;
  const about = JSON.parse(event.data) as { owner?: string; actor?: string; subject?: string };
  return about.owner === user && about.actor !== user ? (about.subject ?? "") : undefined;
}
