/**
 * All GPUs at a glance, on a canvas: a thousand elements in the page would be slow, a thousand rectangles are not.
 * It is one stop for the Tab key; within it the arrow keys move, and what they reach is spoken.
 */
import { Link, useRouter } from "@tanstack/react-router";
import {
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
  type KeyboardEvent,
  type MouseEvent,
  type PointerEvent,
} from "react";

import { useIsDark } from "@/app/useIsDark";
import { useWidth } from "@/charts/useWidth";
import { gpuHref } from "@/pages/fleet/gpus/gpuHref";
import type { Coloring } from "@/pages/fleet/overview/map/colors";
import { spoken } from "@/pages/fleet/overview/map/facts";
import classes from "@/pages/fleet/overview/map/GpuMap.module.css";
import { runsOf, type Gpu } from "@/pages/fleet/overview/map/gpus";
import { layOut, placeAfter, placeAt, type Layout } from "@/pages/fleet/overview/map/layout";
import { lookOf, type Legend } from "@/pages/fleet/overview/map/looks";
import { MapTooltip } from "@/pages/fleet/overview/map/MapTooltip";
import { Painter, type Ink } from "@/pages/fleet/overview/map/painter";
import { useDensity } from "@/pages/fleet/overview/map/useDensity";
import { useSpeech } from "@/pages/fleet/overview/map/useSpeech";

const WANTED_HEIGHT = 430;
const LINE = { dark: "#46526a", light: "#aab4c4" };
const INK: Readonly<Record<"dark" | "light", Ink>> = {
  dark: { text: "#98a2b5", warning: "#f2a33c", cross: "#ffffff" },
  light: { text: "#5b6577", warning: "#b45309", cross: "#ffffff" },
};

export function GpuMap({ gpus, coloring, legend }: { gpus: readonly Gpu[]; coloring: Coloring; legend: Legend }) {
  const speech = useSpeech();
  const router = useRouter();
  const [frame, width] = useWidth();
  const layout = useLayout(gpus, width);
  const canvas = useMapPainting(gpus, coloring, legend, layout);
  const [pointed, setPointed] = useState<string>();
  const [focused, setFocused] = useState<string>();
  const [isFocusVisible, setFocusVisible] = useState(false);

  const activeId = pointed ?? (isFocusVisible ? focused : undefined);
  const place = gpus.findIndex((gpu) => gpu.id === activeId);
  const [active, cell] = [gpus[place], layout.cells[place]];
  const focusedGpu = isFocusVisible ? gpus.find((gpu) => gpu.id === focused) : undefined;

  function point(event: PointerEvent | MouseEvent) {
    const edge = event.currentTarget.getBoundingClientRect();
    const at = placeAt(layout, event.clientX - edge.left, event.clientY - edge.top);
    setPointed(at === undefined ? undefined : gpus[at]?.id);
    return at;
  }
  function open(id: string | undefined) {
    if (id !== undefined) router.history.push(gpuHref(id));
  }
  function click(event: MouseEvent) {
    // The link over the GPU opens it by itself; a finger has none under it yet.
    if (event.target instanceof Element && event.target.closest("a") !== null) return;
    open(gpus[point(event) ?? -1]?.id);
  }
  function press(event: KeyboardEvent) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const from = Math.max(
      0,
      gpus.findIndex((gpu) => gpu.id === focused),
    );
    if (event.key === "Enter") {
      open(gpus[from]?.id);
      return;
    }
    const next = placeAfter(layout, from, event.key);
    if (next === undefined) return;
    event.preventDefault();
    setPointed(undefined);
    setFocused(gpus[next]?.id);
    setFocusVisible(true);
  }
  function focus(event: { readonly currentTarget: Element }) {
    setFocused((before) => before ?? gpus[0]?.id);
    setFocusVisible(event.currentTarget.matches(":focus-visible"));
  }

  return (
    <div ref={frame} className={classes.frame}>
      <div
        className={classes.map}
        style={{ height: layout.height }}
        role="application"
        tabIndex={0}
        aria-label={speech.t("mapLabel", { n: gpus.length })}
        onPointerMove={point}
        onPointerLeave={() => setPointed(undefined)}
        onClick={click}
        onKeyDown={press}
        onFocus={focus}
        onBlur={() => setFocusVisible(false)}
      >
        <canvas
          ref={canvas}
          className={classes.canvas}
          style={{ width: layout.width, height: layout.height }}
          aria-hidden="true"
        />
        {active !== undefined && cell !== undefined && (
          <>
            <Link
              to={gpuHref(active.id)}
              tabIndex={-1}
              className={classes.ring}
              aria-label={speech.t("open", { gpu: active.id })}
              style={{
                transform: `translate(${cell.x - 2}px, ${cell.y - 2}px)`,
                width: cell.width + 4,
                height: cell.height + 4,
              }}
            />
            <MapTooltip gpu={active} cell={cell} width={layout.width} />
          </>
        )}
      </div>
      <div className="visually-hidden" aria-live="polite">
        {focusedGpu !== undefined && spoken(focusedGpu, speech)}
      </div>
    </div>
  );
}

/** The same object while nodes and their GPUs are the same: only then is drawing what changed enough. */
function useLayout(gpus: readonly Gpu[], width: number): Layout {
  const runs = useMemo(() => runsOf(gpus), [gpus]);
  const shape = useMemo(() => runs.map((run) => `${run.node}:${run.state}:${run.count}`).join("|"), [runs]);
  const kept = useRef<{ shape: string; width: number; layout: Layout }>(undefined);
  if (kept.current?.shape !== shape || kept.current.width !== width)
    kept.current = { shape, width, layout: layOut(runs, width, WANTED_HEIGHT) };
  return kept.current.layout;
}

function useMapPainting(gpus: readonly Gpu[], coloring: Coloring, legend: Legend, layout: Layout) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const painter = useRef<Painter>(undefined);
  const theme = useIsDark() ? "dark" : "light";
  const density = useDensity();
  const looks = useMemo(
    () => gpus.map((gpu) => lookOf(gpu, coloring, legend, LINE[theme])),
    [gpus, coloring, legend, theme],
  );
  useEffect(() => () => void (painter.current = undefined), []);
  useLayoutEffect(() => {
    if (canvas.current === null || layout.cells.length === 0) return;
    painter.current ??= new Painter(canvas.current);
    const drawn = painter.current.paint(layout, looks, INK[theme], density);
    // Read by benchmarks/overview.py.
    performance.mark("gpu-map-drawn", { detail: drawn });
  }, [layout, looks, theme, density]);
  return canvas;
}
