/** Where each GPU stands on the map: nodes as blocks in rows, as large as the room allows and never too small to be hit. */
import type { NodeRun } from "@/pages/fleet/overview/map/gpus";

export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export interface Block extends Box {
  readonly run: NodeRun;
  /** The place of its first GPU. */
  readonly first: number;
}

export interface Layout {
  /** In the order of the GPUs. */
  readonly cells: readonly Box[];
  readonly blocks: readonly Block[];
  readonly width: number;
  readonly height: number;
}

export const LABEL_HEIGHT = 16;
const CELL_GAP = 3;
const BLOCK_GAP = 14;
const LARGEST = 30;
const SMALLEST = 11;
/** Cells are at least this much wider than high, and at most that much. */
const NARROW = 1.25;
const WIDE = 2;

/** The largest cells with which everything fits into the wanted height; the smallest, and a higher map, if none does. */
export function layOut(runs: readonly NodeRun[], width: number, wantedHeight: number): Layout {
  if (runs.length === 0 || width <= 0) return { cells: [], blocks: [], width, height: 0 };
  for (let size = LARGEST; size > SMALLEST; size -= 1) {
    const layout = withCells(runs, width, size);
    if (layout.height <= wantedHeight) return layout;
  }
  return withCells(runs, width, SMALLEST);
}

/** GPUs side by side on each node. */
export function columnsFor(most: number): number {
  if (most <= 4) return most;
  return most <= 16 ? 4 : 8;
}

function withCells(runs: readonly NodeRun[], width: number, size: number): Layout {
  const columns = columnsFor(Math.max(...runs.map((run) => run.count)));
  const least = columns * (Math.round(size * NARROW) + CELL_GAP) - CELL_GAP;
  const perRow = Math.max(1, Math.min(runs.length, Math.floor((width + BLOCK_GAP) / (least + BLOCK_GAP))));
  // What is left of a row's width goes to its cells.
  const room = (width - (perRow - 1) * BLOCK_GAP) / perRow;
  const cellWidth = Math.min(Math.floor((room + CELL_GAP) / columns - CELL_GAP), size * WIDE);
  const blockWidth = columns * (cellWidth + CELL_GAP) - CELL_GAP;
  const cells: Box[] = [];
  const blocks: Block[] = [];
  let top = 0;
  for (let begin = 0; begin < runs.length; begin += perRow) {
    const row = runs.slice(begin, begin + perRow);
    const lines = Math.max(...row.map((run) => Math.ceil(run.count / columns)));
    const height = LABEL_HEIGHT + lines * (size + CELL_GAP) - CELL_GAP;
    for (const [place, run] of row.entries()) {
      const left = place * (blockWidth + BLOCK_GAP);
      blocks.push({ run, first: cells.length, x: left, y: top, width: blockWidth, height });
      for (let at = 0; at < run.count; at += 1) {
        const x = left + (at % columns) * (cellWidth + CELL_GAP);
        const y = top + LABEL_HEIGHT + Math.floor(at / columns) * (size + CELL_GAP);
        cells.push({ x, y, width: cellWidth, height: size });
      }
    }
    top += height + BLOCK_GAP;
  }
  return { cells, blocks, width, height: top - BLOCK_GAP };
}

/** The place of the GPU under a point; half of the gap around it belongs to it. */
export function placeAt(layout: Layout, x: number, y: number): number | undefined {
  const near = CELL_GAP / 2;
  const block = layout.blocks.find(
    (one) => x >= one.x - near && x < one.x + one.width + near && y >= one.y && y < one.y + one.height + near,
  );
  if (block === undefined) return undefined;
  for (let place = block.first; place < block.first + block.run.count; place += 1) {
    const cell = layout.cells[place];
    if (
      cell !== undefined &&
      x >= cell.x - near &&
      x < cell.x + cell.width + near &&
      y >= cell.y - near &&
      y < cell.y + cell.height + near
    )
      return place;
  }
  return undefined;
}

/** Where a key leads from a place; undefined for keys that lead nowhere. */
export function placeAfter(layout: Layout, place: number, key: string): number | undefined {
  const last = layout.cells.length - 1;
  if (key === "ArrowRight") return Math.min(last, place + 1);
  if (key === "ArrowLeft") return Math.max(0, place - 1);
  if (key === "Home") return 0;
  if (key === "End") return last;
  if (key === "ArrowDown" || key === "ArrowUp") return vertically(layout, place, key === "ArrowDown" ? 1 : -1);
  if (key === "PageDown" || key === "PageUp") return otherBlock(layout, place, key === "PageDown" ? 1 : -1);
  return undefined;
}

/** The nearest in the next row of cells. */
function vertically(layout: Layout, place: number, direction: 1 | -1): number {
  const from = layout.cells[place];
  if (from === undefined) return place;
  let best = place;
  let leastDown = Infinity;
  let leastAside = Infinity;
  for (const [at, cell] of layout.cells.entries()) {
    const down = (cell.y - from.y) * direction;
    if (down <= 0 || down > leastDown) continue;
    const aside = Math.abs(cell.x - from.x);
    if (down === leastDown && aside >= leastAside) continue;
    [best, leastDown, leastAside] = [at, down, aside];
  }
  return best;
}

function otherBlock(layout: Layout, place: number, direction: 1 | -1): number {
  const at = layout.blocks.findLastIndex((block) => block.first <= place);
  return layout.blocks[Math.max(0, Math.min(layout.blocks.length - 1, at + direction))]?.first ?? place;
}
