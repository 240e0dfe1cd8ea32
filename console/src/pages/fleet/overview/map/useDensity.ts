/** How many pixels of the screen make one of the page; changes when a window moves to another screen or is zoomed. */
import { useEffect, useState } from "react";

export function useDensity(): number {
  const [density, setDensity] = useState(() => window.devicePixelRatio);
  useEffect(() => {
    const query = window.matchMedia(`(resolution: ${density}dppx)`);
    const change = () => setDensity(window.devicePixelRatio);
    query.addEventListener("change", change);
    return () => query.removeEventListener("change", change);
  }, [density]);
  return density;
}
