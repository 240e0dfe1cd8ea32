/** A point in time: how long ago, with the exact time in the viewer's zone on hover and for screen readers. */
import { useSyncExternalStore } from "react";

import { useFormat } from "@/texts/format";

const TICK_MS = 10_000;
const watchers = new Set<() => void>();
let now = Date.now();
let timer: number | undefined;

/** One clock for all moments on the page. */
function watch(watcher: () => void): () => void {
  watchers.add(watcher);
  timer ??= window.setInterval(() => {
    now = Date.now();
    for (const one of watchers) one();
  }, TICK_MS);
  return () => {
    watchers.delete(watcher);
    if (watchers.size === 0) {
      window.clearInterval(timer);
      timer = undefined;
    }
  };
}

/** The present time in milliseconds, moving on every ten seconds. */
export function useNow(): number {
  return useSyncExternalStore(watch, () => now);
}

/** The clock of the page moves in steps: what happened since its last step was just now, not in the future. */
function asOf(at: string, present: number): number {
  return Math.max(present, Math.min(Date.parse(at), Date.now()), Date.now() - TICK_MS);
}

export function Moment({ at }: { at: string | null | undefined }) {
  const format = useFormat();
  const present = useNow();
  if (at === null || at === undefined) return <>–</>;
  return (
    // The browser's own hint: tables have hundreds of these.
    <time dateTime={at} className="num" title={format.dateTime(at)}>
      {format.ago(at, asOf(at, present))}
    </time>
  );
}
