/** An item of the inbox as a sentence, and the page that it leads to. */
import type { Schema } from "@/api/client";
import { actions } from "@/pages/people/inbox/texts";
import type { Say } from "@/texts/texts";

export type InboxItem = Schema<"InboxItemView">;

export function sentenceOf(t: Say<typeof actions>, action: string, name: string): string {
  return isKnown(action) ? t(action, { name }) : `${name}: ${action}`;
}

export function isKnown(action: string): action is keyof typeof actions {
  return action in actions;
}

export function hrefOf(item: InboxItem): string {
  if (item.kind === "quota") return item.action.startsWith("budget.") ? "/budgets" : "/volumes";
  const page = { job: "jobs", volume: "volumes", dataset: "datasets", node: "nodes" }[item.action.split(".")[0] ?? ""];
  return `/${page ?? "inbox"}/${encodeURIComponent(item.subject)}`;
}
