/** How one GPU looks on the map: a fill, an edge, and a shape for what is out of order. */
import { healthColor, ownerColors, scaleOf, shade, type Coloring, type Scale } from "@/pages/fleet/overview/map/colors";
import type { Gpu } from "@/pages/fleet/overview/map/gpus";

/** Cross: failed. Hatch: suspect. Dashes: no fresh reading. */
export type Mark = "none" | "cross" | "hatch" | "dashes";

export interface Look {
  readonly fill: string | null;
  readonly edge: string | null;
  readonly mark: Mark;
  /** On a node that takes no new work. */
  readonly faded: boolean;
}

export interface Legend {
  readonly scale: Scale | undefined;
  readonly owners: ReadonlyMap<string, string>;
  /** Others hold some of them, outside of corral. */
  readonly hasTaken: boolean;
}

export function legendOf(coloring: Coloring, gpus: readonly Gpu[], dark: boolean): Legend {
  const owners =
    coloring === "owner"
      ? ownerColors([...new Set(gpus.flatMap((gpu) => gpu.owner ?? []))])
      : new Map<string, string>();
  return { scale: scaleOf(coloring, gpus, dark), owners, hasTaken: gpus.some((gpu) => gpu.taken) };
}

export function lookOf(gpu: Gpu, coloring: Coloring, legend: Legend, line: string): Look {
  const faded = gpu.nodeState !== "ready";
  const color = colorOf(gpu, coloring, legend);
  if (gpu.health === "failed") return { fill: healthColor("failed"), edge: null, mark: "cross", faded: false };
  if (gpu.health === "suspect") return { fill: color, edge: healthColor("suspect"), mark: "hatch", faded };
  if (gpu.taken && gpu.allocated === 0 && gpu.nodeState !== "down" && coloring !== "health")
    return { fill: line, edge: line, mark: "none", faded };
  if (gpu.stale || gpu.nodeState === "down") return { fill: null, edge: line, mark: "dashes", faded };
  // Free ones are hollow; their edge still shows the measured value.
  if (gpu.allocated === 0 && coloring !== "health")
    return {
      fill: null,
      edge: coloring === "temperature" || coloring === "power" ? (color ?? line) : line,
      mark: "none",
      faded,
    };
  return { fill: color, edge: color === null ? line : null, mark: "none", faded };
}

function colorOf(gpu: Gpu, coloring: Coloring, { scale, owners }: Legend): string | null {
  if (coloring === "health") return healthColor(gpu.health);
  if (coloring === "owner") return gpu.owner === null ? null : (owners.get(gpu.owner) ?? null);
  const value = gpu[coloring];
  return value === null || scale === undefined ? null : shade(scale, value);
}

export function isSameLook(left: Look | undefined, right: Look): boolean {
  return (
    left !== undefined &&
    left.fill === right.fill &&
    left.edge === right.edge &&
    left.mark === right.mark &&
    left.faded === right.faded
  );
}

/** The places whose look is another than before. */
export function changedPlaces(before: readonly Look[], after: readonly Look[]): number[] {
  return after.flatMap((look, place) => (isSameLook(before[place], look) ? [] : [place]));
}
