import { useDraggable } from "@dnd-kit/core";
import { memo, type KeyboardEvent, type MouseEvent } from "react";

import classes from "@/parts/board/Board.module.css";
import type { Tile } from "@/parts/board/types";

export interface BoardTileProps {
  readonly tile: Tile;
  readonly column: string;
  readonly chosen: boolean;
  readonly lifted: boolean;
  readonly wide: boolean;
  /** Whether the Tab key comes here; within a column the arrow keys go on. */
  readonly reachable: boolean;
  readonly onChoose: (id: string, range: boolean) => void;
  readonly onStep: (event: KeyboardEvent, id: string) => void;
}

export const BoardTile = memo(function BoardTile({
  tile,
  column,
  chosen,
  lifted,
  wide,
  reachable,
  onChoose,
  onStep,
}: BoardTileProps) {
  const { listeners, setNodeRef } = useDraggable({ id: tile.id, data: { column } });
  function clicked(event: MouseEvent) {
    onChoose(tile.id, event.shiftKey);
  }
  function pressed(event: KeyboardEvent) {
    onStep(event, tile.id);
    if (!event.defaultPrevented) listeners?.onKeyDown?.(event);
  }
  return (
    <button
      ref={setNodeRef}
      type="button"
      {...listeners}
      className={wide ? `${classes.tile} ${classes.wide}` : classes.tile}
      data-tile={tile.id}
      data-tone={tile.tone}
      data-lifted={lifted}
      aria-pressed={chosen}
      // A wide tile says by itself what it is.
      aria-label={wide ? undefined : tile.label}
      title={tile.label}
      tabIndex={reachable ? 0 : -1}
      onClick={clicked}
      onKeyDown={pressed}
    >
      {tile.content}
    </button>
  );
});
