/**
 * The events as of a moment. News do not push the list down under the reader's eyes: they are counted, and shown when asked
 * for. So this list is not read anew by the stream as others are.
 */
import { useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useState } from "react";

import { api, sent, type Schema } from "@/api/client";
import type { ServerEvent } from "@/api/events";
import { useLiveEvents } from "@/api/LiveProvider";

export type EventView = Schema<"EventView">;

export interface Where {
  readonly actor?: string;
  readonly action?: string;
  readonly subject?: string;
  readonly since?: string;
  readonly until?: string;
  readonly q?: string;
}

export function useEvents(where: Where) {
  const queries = useQueryClient();
  const key = ["audit", where];
  const result = useInfiniteQuery({
    queryKey: key,
    queryFn: ({ pageParam }) =>
      sent(api.GET("/events", { params: { query: { ...where, limit: 100, cursor: pageParam } } })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.next_cursor ?? undefined,
    staleTime: Infinity,
    // Read anew whenever the page is opened: nothing else makes it old.
    refetchOnMount: "always",
    gcTime: 0,
  });
  const items = result.data?.pages.flatMap((page) => page.items);
  const { fresh, forget } = useNews(where, items);
  return {
    items,
    error: result.error,
    hasMore: result.hasNextPage,
    isLoadingMore: result.isFetchingNextPage,
    loadMore: () => void result.fetchNextPage(),
    retry: () => void result.refetch(),
    fresh,
    showFresh: () => {
      forget();
      void queries.resetQueries({ queryKey: key });
    },
  };
}

/** The number of matching events of the stream that are newer than the list. */
function useNews(where: Where, items: readonly EventView[] | undefined): { fresh: number; forget: () => void } {
  const [arrived, setArrived] = useState<{ where: Where; ids: readonly number[] }>({ where, ids: [] });
  useLiveEvents(
    useCallback(
      (event: ServerEvent) => {
        const head = eventOf(event);
        if (head === undefined || !matches(head, event.data, where)) return;
        setArrived((before) => ({ where, ids: [...(before.where === where ? before.ids : []), head.id] }));
      },
      [where],
    ),
  );
  return {
    fresh: arrived.where === where && items !== undefined ? newerThan(items, arrived.ids) : 0,
    forget: () => setArrived({ where, ids: [] }),
  };
}

/** The list may have been read after an event was sent and before the stream delivered it. */
export function newerThan(items: readonly Pick<EventView, "id">[], ids: readonly number[]): number {
  const newest = items[0]?.id ?? 0;
  return ids.filter((id) => id > newest).length;
}

type EventHead = Pick<EventView, "id" | "actor" | "action" | "subject">;

function eventOf(event: ServerEvent): EventHead | undefined {
  // Greetings and ticks have no id: they are no events of the log.
  if (event.id === "") return undefined;
  const data: unknown = JSON.parse(event.data);
  if (typeof data !== "object" || data === null) return undefined;
  const { actor, action, subject } = data as Record<string, unknown>;
  return { id: Number(event.id), actor: String(actor), action: String(action), subject: String(subject) };
}

function matches(event: EventHead, text: string, where: Where): boolean {
  if (where.until !== undefined && Date.parse(where.until) < Date.now()) return false;
  if (where.since !== undefined && Date.parse(where.since) > Date.now()) return false;
  if (where.q !== undefined && !text.toLowerCase().includes(where.q.toLowerCase())) return false;
  return (
    (where.actor ?? event.actor) === event.actor &&
    (where.action ?? event.action) === event.action &&
    (where.subject ?? event.subject) === event.subject
  );
}
