/** Whole lists and endless ones, out of the API's pages. */
import { useInfiniteQuery, useQuery, type UseQueryResult } from "@tanstack/react-query";

import { api, sent, type Paths } from "@/api/client";
import type { Problem } from "@/api/problem";

interface PageOf<T> {
  readonly items: readonly T[];
  readonly next_cursor?: string | null;
}

/** Paths whose GET answers with pages. */
type ListPath = {
  [P in keyof Paths]: Paths[P] extends {
    get: { responses: { 200: { content: { "application/json": PageOf<unknown> } } } };
  }
    ? P
    : never;
}[keyof Paths];
type ItemOf<P extends ListPath> = Paths[P] extends {
  get: { responses: { 200: { content: { "application/json": PageOf<infer T> } } } };
}
  ? T
  : never;
export type Query = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;
type Get = (path: string, init: object) => Promise<{ data?: unknown; error?: unknown; response: Response }>;

const MOST = 500;
/** A file of more rows is the work of `corral jobs -o csv`. */
const MOST_IN_FILE = 20_000;

async function page<P extends ListPath>(
  path: P,
  query: Query,
  at: { readonly [name: string]: string } | undefined,
): Promise<PageOf<ItemOf<P>>> {
  // The client's types cannot be derived for a path that is a variable; `ItemOf` types the answer.
  const get = api.GET as unknown as Get;
  return (await sent(get(path, { params: { query, path: at ?? {} } }))) as PageOf<ItemOf<P>>;
}

/** All pages, up to so many items. */
async function every<P extends ListPath>(
  path: P,
  query: Query,
  at: { readonly [name: string]: string } | undefined,
  most = Infinity,
): Promise<readonly ItemOf<P>[]> {
  const items: ItemOf<P>[] = [];
  for (let cursor: string | null | undefined; cursor !== null && items.length < most;) {
    const next: PageOf<ItemOf<P>> = await page(path, { ...query, cursor }, at);
    items.push(...next.items);
    cursor = next.next_cursor ?? null;
  }
  return items;
}

/**
 * Every item of a list that is naturally small: pools, users, packages … `const { data: pools } = useAll("/pools")`.
 * `at` fills the path's own placeholders.
 */
export function useAll<P extends ListPath>(
  path: P,
  query: Query = {},
  enabled = true,
  at?: { readonly [name: string]: string },
): UseQueryResult<readonly ItemOf<P>[], Problem> {
  return useQuery<readonly ItemOf<P>[], Problem>({
    // The same shape as the other hooks' keys, so that events of the stream find it by its path.
    queryKey: ["get", path, { all: true, query, at }],
    enabled,
    queryFn: () => every(path, { limit: MOST, ...query }, at),
    placeholderData: (before) => before,
  });
}

/** A list without a natural end, page by page: jobs, events. `items` is undefined while the first page loads. */
export function usePages<P extends ListPath>(path: P, query: Query, at?: { readonly [name: string]: string }) {
  const result = useInfiniteQuery<
    PageOf<ItemOf<P>>,
    Problem,
    { pages: PageOf<ItemOf<P>>[] },
    readonly unknown[],
    string | undefined
  >({
    queryKey: ["get", path, { pages: true, query, at }],
    queryFn: ({ pageParam }) => page(path, { ...query, cursor: pageParam }, at),
    initialPageParam: undefined,
    getNextPageParam: (last) => last.next_cursor ?? undefined,
    placeholderData: (before) => before,
  });
  return {
    items: result.data?.pages.flatMap((one) => one.items),
    error: result.error,
    isStale: result.isPlaceholderData,
    hasMore: result.hasNextPage,
    isLoadingMore: result.isFetchingNextPage,
    loadAll: () => every(path, { ...query, limit: MOST }, at, MOST_IN_FILE),
    loadMore: () => void result.fetchNextPage(),
    retry: () => void result.refetch(),
  };
}
