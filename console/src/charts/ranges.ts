/** Spans of time that charts look back over; the one in use is in the address: `?range=24h`. */
import { useFilters } from "@/app/useFilters";

export const RANGES = ["1h", "6h", "24h", "7d", "30d"] as const;
export type Range = (typeof RANGES)[number];

const SECONDS: Readonly<Record<Range, number>> = {
  "1h": 3_600,
  "6h": 21_600,
  "24h": 86_400,
  "7d": 604_800,
  "30d": 2_592_000,
};
const USUAL = { range: "1h" };

export function secondsOf(range: Range): number {
  return SECONDS[range];
}

export function isRange(text: string): text is Range {
  return RANGES.some((range) => range === text);
}

/** What the address says, or one hour. */
export function useRange(): [Range, (range: Range) => void] {
  const [filters, setFilters] = useFilters(USUAL);
  return [isRange(filters.range) ? filters.range : "1h", (range) => setFilters({ range })];
}
