/** Lists that a page needs together: there are data when all of them are loaded, and one button loads the failed ones again. */
export interface Loaded<T> {
  readonly data: T | undefined;
  readonly error: object | null;
  readonly refetch: () => Promise<unknown>;
}

/** The data are those of the first list. */
export function together<T>(first: Loaded<T>, ...others: readonly Loaded<unknown>[]): Loaded<T> {
  const failed = [first, ...others].filter((one) => one.error !== null);
  return {
    data: others.every((one) => one.data !== undefined) ? first.data : undefined,
    error: failed[0]?.error ?? null,
    refetch: () => Promise.all(failed.map((one) => one.refetch())),
  };
}
