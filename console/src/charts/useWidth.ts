/** How wide an element is at present, and a reference to it. */
import { useEffect, useRef, useState, type RefObject } from "react";

export function useWidth(): [frame: RefObject<HTMLDivElement | null>, width: number] {
  const frame = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    if (frame.current === null) return undefined;
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry?.contentRect.width ?? 0)));
    observer.observe(frame.current);
    return () => observer.disconnect();
  }, []);
  return [frame, width];
}
