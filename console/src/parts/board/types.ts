/** Things in columns that are dragged from one to another: GPUs between pools, users between groups. */
import type { ReactNode } from "react";

export interface Tile {
  readonly id: string;
  /** The name, for the tooltip and for screen readers. */
  readonly label: string;
  readonly content: ReactNode;
  readonly tone: "free" | "used" | "bad";
}

/** Tiles that belong together, such as the GPUs of a node. */
export interface TileRow {
  readonly key: string;
  readonly title?: string;
  readonly tiles: readonly Tile[];
}

export interface BoardColumn {
  readonly id: string;
  readonly title: string;
  /** Below the title: what is in it, and whose it is. */
  readonly detail: ReactNode;
  readonly rows: readonly TileRow[];
  /** The text of a column without tiles. */
  readonly empty: string;
}

export function tilesOf(column: BoardColumn): readonly Tile[] {
  return column.rows.flatMap((row) => row.tiles);
}
