import { useEffect, useRef } from "react";

/** Does something again and again while the page is looked at: for what changes without the stream telling this viewer. */
export function useEvery(pauseMs: number, act: () => void): void {
  const latest = useRef(act);
  useEffect(() => {
    latest.current = act;
  }, [act]);
  useEffect(() => {
    const timer = window.setInterval(() => {
      if (document.visibilityState === "visible") latest.current();
    }, pauseMs);
    return () => window.clearInterval(timer);
  }, [pauseMs]);
}
