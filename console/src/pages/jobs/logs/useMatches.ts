/** Where a text is in what is loaded of a log: searched again as lines come, without holding the page up. */
import { useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";

import { patternOf, type Found, type LogStore } from "@/pages/jobs/logs/LogStore";

const NOTHING: Found = { lines: [], isCut: false };
const PAUSE_MS = 150;
const AGAIN_MS = 1_000;

export interface Matches extends Found {
  readonly pattern: RegExp | undefined;
  readonly isSearching: boolean;
}

export function useMatches(store: LogStore, query: string): Matches {
  const pattern = useMemo(() => (query === "" ? undefined : patternOf(query)), [query]);
  const version = useSyncExternalStore(store.subscribe, store.version);
  const [found, setFound] = useState<{ readonly of: RegExp | undefined; readonly found: Found }>({
    of: undefined,
    found: NOTHING,
  });
  // Every second while lines come in, not with every frame.
  const [turn, setTurn] = useState(0);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => {
    timer.current ??= setTimeout(() => {
      timer.current = undefined;
      setTurn(store.version());
    }, AGAIN_MS);
  }, [store, version]);
  useEffect(() => {
    if (pattern === undefined) return undefined;
    const ended = new AbortController();
    const pause = setTimeout(() => {
      void store.find(pattern, ended.signal).then((all) => {
        if (!ended.signal.aborted) setFound({ of: pattern, found: all });
      });
    }, PAUSE_MS);
    return () => {
      clearTimeout(pause);
      ended.abort();
    };
  }, [store, pattern, turn]);
  const isFresh = found.of === pattern && pattern !== undefined;
  return { ...(isFresh ? found.found : NOTHING), pattern, isSearching: pattern !== undefined && !isFresh };
}
