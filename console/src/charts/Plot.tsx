import "uplot/dist/uPlot.min.css";

import { useEffect, useRef } from "react";
import uPlot, { type AlignedData } from "uplot";

import type { Line, LineChartProps } from "@/charts/LineChart";
import { useWidth } from "@/charts/useWidth";
import { useIsDark } from "@/app/useIsDark";
import { useFormat, type Format } from "@/texts/format";

/** A shorter mark is a click. */
const LEAST_ZOOM_PIXELS = 6;
/** Marks as near as this to the crosshair are named. */
const NEAR_PIXELS = 5;
const MOST_NAMED = 4;

/** Half of the widest label of the time axis, so that one below the end of the axis is not cut. */
const HALF_LABEL_PIXELS = 28;

/** Steps that are round in KiB, MiB, GiB … */
const BINARY = Array.from({ length: 54 }, (_, power) => 2 ** power);

type Props = LineChartProps & { readonly lines: readonly Line[]; readonly height: number };

export default function Plot(props: Props) {
  const format = useFormat();
  const dark = useIsDark();
  const [frame, width] = useWidth();
  const plot = useRef<uPlot>(undefined);
  // The plot is made anew only when its shape changes; new points only replace its data.
  const shape = JSON.stringify([
    props.lines.map((line) => [line.label, line.color]),
    props.min,
    props.max,
    props.height,
    props.axis,
    props.onZoom !== undefined,
    dark,
  ]);
  const latest = useRef(props);
  latest.current = props;

  useEffect(() => {
    const parent = frame.current;
    if (parent === null) return undefined;
    const made = new uPlot(
      options(() => latest.current, format, dark, Math.max(parent.clientWidth, 50)),
      aligned(latest.current.lines),
      parent,
    );
    plot.current = made;
    return () => {
      made.destroy();
      plot.current = undefined;
    };
  }, [shape, format, dark, frame]);

  useEffect(() => {
    plot.current?.setData(aligned(props.lines), props.range === undefined);
    if (props.range !== undefined) plot.current?.setScale("x", { min: props.range[0], max: props.range[1] });
  }, [props.lines, props.range]);

  // New marks alone change no data.
  useEffect(() => plot.current?.redraw(false), [props.marks]);

  useEffect(() => {
    if (width > 0) plot.current?.setSize({ width, height: props.height });
  }, [width, props.height]);

  return <div ref={frame} style={{ height: props.height }} aria-hidden="true" />;
}

function options(current: () => Props, format: Format, dark: boolean, width: number): uPlot.Options {
  const props = current();
  const isTime = props.axis !== "step";
  const grid = { stroke: dark ? "#1e2737" : "#e6eaf1", width: 1 };
  const axis = {
    stroke: dark ? "#98a2b5" : "#5b6577",
    grid,
    ticks: { show: false },
    font: '11px "Inter Variable", sans-serif',
  };
  return {
    width,
    height: props.height,
    legend: { show: false },
    padding: [8, HALF_LABEL_PIXELS, 0, 0],
    cursor: {
      y: false,
      points: { size: 6 },
      drag: { x: !isTime || props.onZoom !== undefined, y: false, setScale: !isTime },
      sync: { key: isTime ? "time" : "step", setSeries: false, scales: ["x", null] },
    },
    scales: {
      x: { time: isTime },
      y: { range: (_, low, high) => [props.min ?? Math.min(0, low), props.max ?? (high > 0 ? high * 1.08 : 1)] },
    },
    axes: [
      {
        ...axis,
        size: 26,
        space: 64,
        values: (_, splits) => splits.map((at) => (isTime ? axisTime(at, splits, format) : format.number(at))),
      },
      {
        ...axis,
        size: roomFor,
        space: 28,
        ...(props.binary === true ? { incrs: BINARY } : {}),
        values: (_, splits) => splits.map((value) => props.format(value)),
      },
    ],
    series: [
      {},
      ...props.lines.map((line) => ({
        label: line.label,
        stroke: line.color,
        width: 1.5,
        points: { show: false },
        spanGaps: false,
      })),
    ],
    plugins: [tooltip(current, format), marked(current), zooming(current)],
  };
}

/** Marking a stretch of time asks for that time; the page answers with other points. */
function zooming(current: () => Props): uPlot.Plugin {
  return {
    hooks: {
      setSelect: (plot) => {
        const { onZoom, axis } = current();
        if (axis === "step" || onZoom === undefined || plot.select.width < LEAST_ZOOM_PIXELS) return;
        const from = plot.posToVal(plot.select.left, "x");
        const to = plot.posToVal(plot.select.left + plot.select.width, "x");
        plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        // Charts with the same crosshair hear the same selection; the one under the mouse asks.
        if (plot.over.matches(":hover")) onZoom(from, to);
      },
    },
  };
}

/** Lines at times when something happened; the tooltip names what is near. */
function marked(current: () => Props): uPlot.Plugin {
  return {
    hooks: {
      draw: (plot) => {
        const { left, top, width, height } = plot.bbox;
        for (const mark of current().marks ?? []) {
          const x = Math.round(plot.valToPos(mark.at, "x", true));
          if (x < left || x > left + width) continue;
          plot.ctx.save();
          plot.ctx.strokeStyle = mark.color;
          plot.ctx.globalAlpha = 0.7;
          plot.ctx.lineWidth = devicePixelRatio;
          plot.ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
          plot.ctx.beginPath();
          plot.ctx.moveTo(x, top);
          plot.ctx.lineTo(x, top + height);
          plot.ctx.stroke();
          plot.ctx.restore();
        }
      },
    },
  };
}

/** The width of the longest number beside the axis. */
function roomFor(_: uPlot, values: string[] | null): number {
  return Math.max(40, ...(values ?? []).map((text) => 14 + 6.4 * text.length));
}

/** Hours within a day, else the day too. */
function axisTime(at: number, splits: number[], format: Format): string {
  const span = (splits.at(-1) ?? at) - (splits[0] ?? at);
  if (span < 300) return format.seconds(at * 1000);
  if (span < 86_400) return format.time(at * 1000);
  return format.day(at * 1000);
}

/** One row of times for all lines. A gap is a null that was given; where only another line has a point, a line goes on. */
function aligned(lines: readonly Line[]): AlignedData {
  const times = [...new Set(lines.flatMap((line) => line.points.map(([at]) => at)))].sort(
    (left, right) => left - right,
  );
  const columns = lines.map((line) => {
    const values = new Map(line.points);
    return times.map((at) => values.get(at));
  });
  return [times, ...columns];
}

function tooltip(props: () => Props, format: Format): uPlot.Plugin {
  const box = document.createElement("div");
  box.className = "plot-tooltip";
  return {
    hooks: {
      init: (plot) => plot.over.append(box),
      setCursor: (plot) => {
        const at = plot.cursor.idx;
        if (at === null || at === undefined || (plot.cursor.left ?? -1) < 0) {
          box.style.display = "none";
          return;
        }
        box.replaceChildren(...rows(plot, at, props(), format));
        box.style.display = "block";
        const left = plot.cursor.left ?? 0;
        const right = left > plot.over.clientWidth / 2;
        box.style.transform = `translate(${right ? left - box.offsetWidth - 12 : left + 12}px, 8px)`;
      },
    },
  };
}

function rows(plot: uPlot, at: number, props: Props, format: Format): HTMLElement[] {
  const time = document.createElement("strong");
  const x = plot.data[0][at] ?? 0;
  time.textContent = props.axis === "step" ? format.number(x) : format.dateTime(x * 1000);
  const lines = props.lines.flatMap((line, index) => {
    const value = plot.data[index + 1]?.[at];
    if (value === null || value === undefined) return [];
    const row = document.createElement("div");
    const mark = document.createElement("i");
    mark.style.background = line.color;
    row.append(mark, `${line.label}: ${props.format(value)}`);
    return [row];
  });
  return [time, ...lines, ...nearMarks(plot, props)];
}

function nearMarks(plot: uPlot, props: Props): HTMLElement[] {
  const cursor = plot.cursor.left ?? -1;
  const near = (props.marks ?? []).filter((mark) => Math.abs(plot.valToPos(mark.at, "x") - cursor) <= NEAR_PIXELS);
  return near.slice(0, MOST_NAMED).map((mark) => {
    const row = document.createElement("div");
    const sign = document.createElement("i");
    sign.style.background = mark.color;
    row.append(sign, mark.label);
    return row;
  });
}
