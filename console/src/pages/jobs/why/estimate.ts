/** An estimated start on a line from now to a little after it: where the likely time lies. */
export interface Estimate {
  readonly p50: string;
  readonly p90: string;
}

export interface Marks {
  /** Per cent of the line. */
  readonly p50: number;
  readonly p90: number;
  /** Milliseconds that the whole line is long. */
  readonly length: number;
}

/** Short of this, now and the estimate would be one point. */
const SHORTEST_MS = 60_000;
/** The free space behind the later mark, for its label. */
const REST = 1.15;

export function marksOf({ p50, p90 }: Estimate, now: number): Marks {
  const [soon, late] = [Date.parse(p50) - now, Date.parse(p90) - now];
  const length = Math.max(SHORTEST_MS, late * REST);
  const part = (ms: number) => Math.min(100, Math.max(0, (100 * ms) / length));
  return { p50: part(soon), p90: part(Math.max(soon, late)), length };
}
