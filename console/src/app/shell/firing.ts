import type { Schema } from "@/api/client";

/** How many alerts fire, of every severity: the number that the page of alerts lists. */
export function firing(overview: Schema<"OverviewView"> | undefined): number {
  return Object.values(overview?.alerts ?? {}).reduce((sum, count) => sum + count, 0);
}
