/**
 * The lines in sight of a log of any length.
 *
 * The line at a part f of the log stands at the part f of the window: the first line at the top when scrolled to the
 * beginning, the last at the bottom at the end. So nothing needs to be known about lines out of view, wrapped or not,
 * and the scrolled space can be smaller than all lines together (browsers do not scroll more than some million pixels).
 */
import { useCallback, useEffect, useLayoutEffect, useRef, useState, useSyncExternalStore, type RefObject } from "react";

import { LogRow } from "@/pages/jobs/logs/LogRow";
import classes from "@/pages/jobs/logs/Logs.module.css";
import type { LogStore } from "@/pages/jobs/logs/LogStore";

const ROW = 18;
const MOST_PIXELS = 12_000_000;
const AROUND = 6;

interface Props {
  readonly store: LogStore;
  readonly label: string;
  readonly wrap: boolean;
  readonly follow: boolean;
  readonly onLetGo: () => void;
  readonly pattern: RegExp | undefined;
  /** Counted from 1: marked, and brought into sight whenever `targetTurn` changes. */
  readonly target: number | undefined;
  readonly targetTurn: number;
}

export function LogView({ store, label, wrap, follow, onLetGo, pattern, target, targetTurn }: Props) {
  const version = useSyncExternalStore(store.subscribe, store.version);
  const scroller = useRef<HTMLDivElement>(null);
  const rows = useRef<HTMLDivElement>(null);
  const height = useHeight(scroller);
  const [scroll, setScroll] = useState(0);
  const lastScroll = useRef(0);

  const first = store.first;
  const count = store.count - first;
  const space = Math.min(MOST_PIXELS, Math.max(count * ROW, 1));
  const furthest = Math.max(0, space - height);
  const part = furthest === 0 ? 0 : Math.min(1, scroll / furthest);
  const anchor = count * ROW <= height ? 0 : part * count;
  const anchorY = count * ROW <= height ? 0 : part * height;
  const from = Math.max(0, Math.floor(anchor - anchorY / ROW) - AROUND);
  const to = Math.min(count, Math.ceil(anchor + (height - anchorY) / ROW) + AROUND);

  const scrollTo = useCallback((top: number) => {
    const element = scroller.current;
    if (element === null) return;
    element.scrollTop = top;
    lastScroll.current = element.scrollTop;
    setScroll(element.scrollTop);
  }, []);

  useLayoutEffect(() => {
    if (follow) scrollTo(space);
  }, [follow, space, version, height, wrap, scrollTo]);

  // The last line in sight, or the wanted one in the middle; as soon as it is there.
  const wanted = useRef(-1);
  useLayoutEffect(() => {
    if (target !== undefined) wanted.current = target;
  }, [target, targetTurn]);
  useLayoutEffect(() => {
    const line = wanted.current - 1 - first;
    if (wanted.current < 1 || line >= count || height === 0) return;
    wanted.current = -1;
    const room = count * ROW - height;
    scrollTo(room <= 0 ? 0 : Math.max(0, Math.min(1, ((line + 0.5) * ROW - height / 2) / room)) * furthest);
  }, [target, targetTurn, count, first, height, furthest, scrollTo]);

  // Wrapped rows are as high as they are: put the anchor's own place where it belongs.
  useLayoutEffect(() => {
    const element = rows.current;
    if (element === null) return;
    const at = Math.min(Math.floor(anchor), Math.max(count - 1, 0));
    const row = element.children[at - from];
    const [top, high] = row instanceof HTMLElement ? [row.offsetTop, row.offsetHeight] : [0, ROW];
    element.style.transform = `translateY(${anchorY - top - (anchor - at) * high}px)`;
  });

  function onScroll() {
    const top = scroller.current?.scrollTop ?? 0;
    if (follow && top < lastScroll.current - 1) onLetGo();
    lastScroll.current = top;
    setScroll(top);
  }

  const gutter = `${Math.max(3, String(store.count).length) + 3}ch`;
  const width = wrap ? "100%" : `calc(${Math.min(store.longest, 20_000)}ch + ${gutter} + 32px)`;
  return (
    <div
      ref={scroller}
      className={wrap ? `${classes.scroller} ${classes.wrapped}` : classes.scroller}
      onScroll={onScroll}
      role="log"
      aria-live="off"
      aria-label={label}
      tabIndex={0}
    >
      <div className={classes.space} style={{ height: space, width }}>
        <div className={classes.window} style={{ height }}>
          <div ref={rows} className={classes.rows}>
            {Array.from({ length: Math.max(0, to - from) }, (_, index) => {
              const line = first + from + index;
              return (
                <LogRow
                  key={line}
                  number={line + 1}
                  line={store.line(line) ?? ""}
                  gutter={gutter}
                  pattern={pattern}
                  isTarget={target === line + 1}
                />
              );
            })}
          </div>
        </div>
      </div>
    </div>
  );
}

function useHeight(element: RefObject<HTMLDivElement | null>): number {
  const [height, setHeight] = useState(0);
  useEffect(() => {
    const found = element.current;
    if (found === null) return undefined;
    const observer = new ResizeObserver(() => setHeight(found.clientHeight));
    observer.observe(found);
    return () => observer.disconnect();
  }, [element]);
  return height;
}
