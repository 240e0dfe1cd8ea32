/** The colours of the map. Shapes show faults; colours only show amounts, or users. */
import { SERIES_COLORS } from "@/charts/colors";
import type { Gpu } from "@/pages/fleet/overview/map/gpus";

export const COLORINGS = ["utilization", "memory", "temperature", "power", "owner", "health"] as const;
export type Coloring = (typeof COLORINGS)[number];

export function isColoring(text: string): text is Coloring {
  return COLORINGS.some((one) => one === text);
}

/** The colour scales, from the least to the most. Both begin near the panel's background and end in contrast to it. */
const AMOUNT = {
  dark: ["#1f3350", "#1f5f86", "#2493a0", "#41b78f", "#9bd26d", "#f0e25a"],
  light: ["#d7e6f2", "#9fd0d8", "#5cb4bd", "#2b8fae", "#27609b", "#2a2f75"],
} as const;
const HEAT = {
  dark: ["#27548f", "#3a8fa8", "#7dbb7a", "#e6c64f", "#ef8a3c", "#e5484d"],
  light: ["#8fb8e8", "#7fcbc4", "#b5d98a", "#f2cf5b", "#ee8f41", "#cf2f36"],
} as const;
const HEALTH = { healthy: "#2aa58c", suspect: "#e98a2b", failed: "#d63b45" } as const;

/** Degrees at which the scale begins and ends. */
const COOL = 25;
const HOT = 95;

export interface Scale {
  readonly stops: readonly string[];
  readonly least: number;
  readonly most: number;
}

/** The scale of a colouring that has one. Power ends at a round figure above the highest seen. */
export function scaleOf(coloring: Coloring, gpus: readonly Gpu[], dark: boolean): Scale | undefined {
  const theme = dark ? "dark" : "light";
  if (coloring === "utilization" || coloring === "memory") return { stops: AMOUNT[theme], least: 0, most: 1 };
  if (coloring === "temperature") return { stops: HEAT[theme], least: COOL, most: HOT };
  if (coloring === "power")
    return {
      stops: AMOUNT[theme],
      least: 0,
      most: roundUp(gpus.reduce((most, gpu) => Math.max(most, gpu.power ?? 0), 0)),
    };
  return undefined;
}

/**
 * Rounds up to the next 1, 2 or 5 with zeros behind it, or its half, so that the scale is steady while readings vary.
 */
export function roundUp(value: number): number {
  if (value <= 0) return 1;
  const unit = 10 ** Math.floor(Math.log10(value));
  return [1, 1.5, 2, 3, 4, 5, 7.5, 10].map((step) => step * unit).find((step) => step >= value) ?? 10 * unit;
}

/** In one of 64 shades, so that a flicker of a reading is no new colour. */
export function shade(scale: Scale, value: number): string {
  const part = Math.max(0, Math.min(1, (value - scale.least) / (scale.most - scale.least || 1)));
  const steps = Math.round(part * 63) / 63;
  const at = steps * (scale.stops.length - 1);
  const low = Math.min(scale.stops.length - 2, Math.floor(at));
  return mixed(scale.stops[low] ?? "#000000", scale.stops[low + 1] ?? "#000000", at - low);
}

export function mixed(from: string, to: string, part: number): string {
  const channel = (at: number) => {
    const [low, high] = [parseInt(from.slice(at, at + 2), 16), parseInt(to.slice(at, at + 2), 16)];
    return Math.round(low + (high - low) * part)
      .toString(16)
      .padStart(2, "0");
  };
  return `#${channel(1)}${channel(3)}${channel(5)}`;
}

const OWNER_COLORS = [...SERIES_COLORS, ...SERIES_COLORS.map((color) => mixed(color, "#808a99", 0.45))];

/** Each user's colour depends on the name, so that it stays when others come and go; two with one colour step aside. */
export function ownerColors(owners: readonly string[]): ReadonlyMap<string, string> {
  const taken = new Set<number>();
  const colors = new Map<string, string>();
  for (const owner of [...owners].sort()) {
    let at = hash(owner) % OWNER_COLORS.length;
    while (taken.has(at) && taken.size < OWNER_COLORS.length) at = (at + 1) % OWNER_COLORS.length;
    taken.add(at);
    colors.set(owner, OWNER_COLORS[at] ?? SERIES_COLORS[0]);
  }
  return colors;
}

function hash(text: string): number {
  let sum = 7;
  for (const letter of text) sum = (sum * 31 + (letter.codePointAt(0) ?? 0)) % 1_000_003;
  return sum;
}

export function healthColor(health: Gpu["health"]): string {
  return HEALTH[health];
}
