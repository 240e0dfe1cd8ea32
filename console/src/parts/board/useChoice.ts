/** The chosen tiles: one by one, in ranges from the last one, by row, or all of a column. */
import { useCallback, useRef } from "react";

import { tilesOf, type BoardColumn, type Tile } from "@/parts/board/types";

export interface Choice {
  /** `range` takes everything between the tile that was chosen last and this one, within the column. */
  readonly choose: (column: BoardColumn, id: string, range: boolean) => void;
  readonly chooseAll: (tiles: readonly Tile[]) => void;
}

export function useChoice(selected: ReadonlySet<string>, onSelect: (selected: ReadonlySet<string>) => void): Choice {
  const last = useRef<string | undefined>(undefined);
  const choose = useCallback(
    (column: BoardColumn, id: string, range: boolean) => {
      const between = range ? rangeOf(tilesOf(column), last.current, id) : [];
      const next = new Set(selected);
      if (between.length > 0) for (const one of between) next.add(one);
      else if (!next.delete(id)) next.add(id);
      last.current = id;
      onSelect(next);
    },
    [selected, onSelect],
  );
  const chooseAll = useCallback(
    (tiles: readonly Tile[]) => {
      const next = new Set(selected);
      const all = tiles.every((tile) => next.has(tile.id));
      for (const { id } of tiles) {
        if (all) next.delete(id);
        else next.add(id);
      }
      onSelect(next);
    },
    [selected, onSelect],
  );
  return { choose, chooseAll };
}

function rangeOf(tiles: readonly Tile[], from: string | undefined, to: string): readonly string[] {
  const begin = tiles.findIndex((tile) => tile.id === from);
  const end = tiles.findIndex((tile) => tile.id === to);
  if (begin < 0 || end < 0) return [];
  return tiles.slice(Math.min(begin, end), Math.max(begin, end) + 1).map((tile) => tile.id);
}
