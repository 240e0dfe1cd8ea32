import { describe, expect, it } from "vitest";

import type { NodeRun } from "@/pages/fleet/overview/map/gpus";
import { columnsFor, layOut, placeAfter, placeAt, type Box } from "@/pages/fleet/overview/map/layout";

const nodes = (count: number, gpus: number): NodeRun[] =>
  Array.from({ length: count }, (_, at) => ({ node: `node-${at}`, state: "ready" as const, count: gpus }));

function overlap(left: Box, right: Box): boolean {
  return (
    left.x < right.x + right.width &&
    right.x < left.x + left.width &&
    left.y < right.y + right.height &&
    right.y < left.y + left.height
  );
}

describe("layOut", () => {
  it("places every GPU within the width, none over another", () => {
    for (const runs of [nodes(1, 8), nodes(11, 4), nodes(64, 8), [...nodes(3, 1), ...nodes(2, 16), ...nodes(1, 72)]]) {
      for (const width of [320, 700, 1200]) {
        const { cells, height } = layOut(runs, width, 430);
        expect(cells).toHaveLength(runs.reduce((sum, run) => sum + run.count, 0));
        for (const [at, cell] of cells.entries()) {
          expect(cell.x + cell.width).toBeLessThanOrEqual(width);
          expect(cell.y + cell.height).toBeLessThanOrEqual(height);
          expect(cells.slice(at + 1).some((other) => overlap(cell, other))).toBe(false);
        }
      }
    }
  });
  it("gives few GPUs large cells and many small ones", () => {
    const few = layOut(nodes(11, 4), 900, 430).cells[0];
    const many = layOut(nodes(125, 8), 900, 430).cells[0];
    expect(few?.height).toBe(30);
    expect(many?.height).toBeGreaterThanOrEqual(11);
    expect(many?.height).toBeLessThan(20);
  });
  it("grows higher rather than drawing cells too small to click", () => {
    const { cells, height } = layOut(nodes(2_000, 8), 900, 430);
    expect(cells[0]?.height).toBe(11);
    expect(height).toBeGreaterThan(430);
  });
  it("has nothing to place without GPUs or room", () => {
    expect(layOut([], 900, 430).cells).toEqual([]);
    expect(layOut(nodes(3, 4), 0, 430).cells).toEqual([]);
  });
});

it("puts at most eight GPUs side by side", () => {
  expect([1, 2, 4, 8, 16, 72].map(columnsFor)).toEqual([1, 2, 4, 4, 4, 8]);
});

describe("placeAt", () => {
  const layout = layOut(nodes(20, 8), 900, 430);
  it("finds each GPU at its middle", () => {
    for (const [at, cell] of layout.cells.entries())
      expect(placeAt(layout, cell.x + cell.width / 2, cell.y + cell.height / 2)).toBe(at);
  });
  it("finds nothing beside the map or on a label", () => {
    expect(placeAt(layout, -10, 30)).toBeUndefined();
    expect(placeAt(layout, 5, 2)).toBeUndefined();
    expect(placeAt(layout, 5, layout.height + 50)).toBeUndefined();
  });
});

describe("placeAfter", () => {
  const layout = layOut(nodes(20, 8), 900, 430);
  it("walks along and stops at the ends", () => {
    expect(placeAfter(layout, 0, "ArrowRight")).toBe(1);
    expect(placeAfter(layout, 0, "ArrowLeft")).toBe(0);
    expect(placeAfter(layout, 159, "ArrowRight")).toBe(159);
    expect(placeAfter(layout, 7, "Home")).toBe(0);
    expect(placeAfter(layout, 7, "End")).toBe(159);
  });
  it("goes down to the GPU below and up again", () => {
    const below = placeAfter(layout, 1, "ArrowDown") ?? -1;
    expect(layout.cells[below]?.x).toBe(layout.cells[1]?.x);
    expect(layout.cells[below]?.y).toBeGreaterThan(layout.cells[1]?.y ?? 0);
    expect(placeAfter(layout, below, "ArrowUp")).toBe(1);
    expect(placeAfter(layout, 1, "ArrowUp")).toBe(1);
  });
  it("reaches every row by going down", () => {
    const rows = new Set(layout.cells.map((cell) => cell.y));
    const seen = new Set<number | undefined>();
    for (let place = 0, before = -1; place !== before;) {
      seen.add(layout.cells[place]?.y);
      before = place;
      place = placeAfter(layout, place, "ArrowDown") ?? place;
    }
    expect(seen.size).toBe(rows.size);
  });
  it("jumps from node to node", () => {
    expect(placeAfter(layout, 3, "PageDown")).toBe(8);
    expect(placeAfter(layout, 9, "PageUp")).toBe(0);
    expect(placeAfter(layout, 3, "x")).toBeUndefined();
  });
});
