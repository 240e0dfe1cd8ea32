/** The start of a waiting job, the same on every page: the likely one, or the planned one where that is the only one
 * known or the earlier of the two. */
export interface Start {
  readonly at: string;
  /** A planned start: the job starts then at the latest. */
  readonly isBound: boolean;
}

export function startOf(
  planned: string | null | undefined,
  estimate: { readonly p50: string } | null | undefined,
): Start | undefined {
  if (estimate && (!planned || Date.parse(estimate.p50) <= Date.parse(planned)))
    return { at: estimate.p50, isBound: false };
  return planned ? { at: planned, isBound: true } : undefined;
}
