/** Rows that changed their place glide there, so that one can follow them; at once for those who want no motion. */
import { useLayoutEffect, useRef, type RefObject } from "react";

const GLIDE_MS = 280;

/** `keys` are the rows' in their order, each on a child of the list as `data-key`. Without motion while `isStill`. */
export function useGlide(keys: readonly string[], isStill: boolean): RefObject<HTMLOListElement | null> {
  const list = useRef<HTMLOListElement>(null);
  const before = useRef<ReadonlyMap<string, number>>(new Map());
  const order = keys.join("\n");
  const still = useRef(isStill);
  still.current = isStill;

  useLayoutEffect(() => {
    const tops = new Map<string, number>();
    const calm = still.current || window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    for (const row of list.current?.children ?? []) {
      if (!(row instanceof HTMLElement) || row.dataset.key === undefined) continue;
      const top = row.offsetTop;
      tops.set(row.dataset.key, top);
      const was = before.current.get(row.dataset.key);
      if (!calm && was !== undefined && was !== top) {
        row.animate([{ transform: `translateY(${was - top}px)` }, { transform: "none" }], {
          duration: GLIDE_MS,
          easing: "ease-out",
        });
      }
    }
    before.current = tops;
  }, [order]);

  return list;
}
