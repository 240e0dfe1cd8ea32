/** The rows of a long table that are drawn: the visible ones, and some around. */
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { useCallback, useState } from "react";

const ROW_HEIGHT = 43;
/** Up to here a browser draws everything faster than one can notice. */
const MANY = 120;

export function useRowWindow(count: number) {
  const [offset, setOffset] = useState(0);
  const scroller = useCallback((element: HTMLDivElement | null) => {
    if (element !== null) setOffset(element.getBoundingClientRect().top + window.scrollY);
  }, []);
  const isLong = count > MANY;
  const virtualizer = useWindowVirtualizer({
    count: isLong ? count : 0,
    estimateSize: () => ROW_HEIGHT,
    overscan: 20,
    scrollMargin: offset,
  });
  if (!isLong) return { scroller, first: 0, last: count, before: 0, after: 0 };
  const items = virtualizer.getVirtualItems();
  const first = items[0]?.index ?? 0;
  const last = (items.at(-1)?.index ?? 0) + 1;
  return { scroller, first, last, before: first * ROW_HEIGHT, after: (count - last) * ROW_HEIGHT };
}
