/** Points in time in fields that people fill in by their own clock, and in addresses that they send to others. */

/** Formats a time for a `datetime-local` field; empty for a missing or invalid time. */
export function localText(at: string, until: "minutes" | "seconds" = "minutes"): string {
  const time = new Date(at);
  if (at === "" || Number.isNaN(time.getTime())) return "";
  return new Date(time.getTime() - time.getTimezoneOffset() * 60_000)
    .toISOString()
    .slice(0, until === "minutes" ? 16 : 19);
}

/** The same moment for every reader: "2026-01-03T10:00:00.000Z"; empty for no time or nonsense. */
export function momentText(local: string): string {
  const time = new Date(local);
  return local === "" || Number.isNaN(time.getTime()) ? "" : time.toISOString();
}
