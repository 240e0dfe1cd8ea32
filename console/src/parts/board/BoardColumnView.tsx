/** One column: only the rows in sight are in the page, so that thousands of tiles stay quick. */
import { useDroppable } from "@dnd-kit/core";
import { Text, Title, UnstyledButton } from "@mantine/core";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useCallback, useId, useRef, useState, type KeyboardEvent } from "react";

import { BoardTile } from "@/parts/board/BoardTile";
import classes from "@/parts/board/Board.module.css";
import { tilesOf, type BoardColumn } from "@/parts/board/types";
import type { Choice } from "@/parts/board/useChoice";
import { texts } from "@/parts/board/texts";
import { useTexts } from "@/texts/texts";

export interface BoardColumnProps {
  readonly column: BoardColumn;
  readonly selected: ReadonlySet<string>;
  readonly choice: Choice;
  /** The dragged items; empty if none are. */
  readonly lifted: ReadonlySet<string>;
  readonly refusal: string | undefined;
  readonly wide: boolean;
}

const ROW_HEIGHT = 56;

export function BoardColumnView({ column, selected, choice, lifted, refusal, wide }: BoardColumnProps) {
  const t = useTexts(texts);
  const headingId = useId();
  const scroller = useRef<HTMLDivElement>(null);
  const { setNodeRef, isOver } = useDroppable({ id: column.id });
  const [reachable, setReachable] = useState<string>();
  const rows = useVirtualizer({
    count: column.rows.length,
    getScrollElement: () => scroller.current,
    getItemKey: (at) => column.rows[at]?.key ?? at,
    estimateSize: () => ROW_HEIGHT,
    overscan: 6,
  });

  const tiles = tilesOf(column);
  const stop = tiles.some((tile) => tile.id === reachable) ? reachable : tiles[0]?.id;
  const choose = useCallback(
    (id: string, range: boolean) => (setReachable(id), choice.choose(column, id, range)),
    [choice, column],
  );

  function goTo(id: string | undefined) {
    if (id === undefined) return;
    setReachable(id);
    rows.scrollToIndex(column.rows.findIndex((row) => row.tiles.some((tile) => tile.id === id)));
    // The row may only now come into the page.
    requestAnimationFrame(() =>
      scroller.current?.querySelector<HTMLElement>(`[data-tile="${CSS.escape(id)}"]`)?.focus(),
    );
  }

  function step(event: KeyboardEvent, id: string) {
    if (lifted.size > 0) return;
    if (event.key === "a" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      choice.chooseAll(tiles);
      return;
    }
    const next = neighbour(column, id, event.key);
    if (next === undefined) return;
    event.preventDefault();
    if (event.shiftKey) choice.choose(column, next, true);
    goTo(next);
  }

  return (
    <section
      ref={setNodeRef}
      className={classes.column}
      aria-labelledby={headingId}
      data-column={column.id}
      data-over={isOver ? (refusal === undefined ? "accepts" : "refuses") : undefined}
    >
      <div className={classes.head}>
        <Title order={3} id={headingId}>
          {column.title}
        </Title>
        <Text size="xs" c="dimmed" component="div">
          {lifted.size > 0 ? (refusal ?? t("dropHere")) : column.detail}
        </Text>
      </div>
      <div ref={scroller} className={classes.scroller}>
        {column.rows.length === 0 && (
          <Text size="sm" c="dimmed">
            {column.empty}
          </Text>
        )}
        <div style={{ height: rows.getTotalSize(), position: "relative" }}>
          {rows.getVirtualItems().map((shown) => {
            const row = column.rows[shown.index];
            if (row === undefined) return null;
            return (
              <div
                key={shown.key}
                ref={rows.measureElement}
                data-index={shown.index}
                className={classes.row}
                style={{ position: "absolute", top: 0, left: 0, right: 0, transform: `translateY(${shown.start}px)` }}
              >
                {row.title !== undefined && (
                  <UnstyledButton
                    className={classes.rowTitle}
                    aria-label={t("chooseRow", { name: row.title })}
                    title={t("chooseRow", { name: row.title })}
                    onClick={() => choice.chooseAll(row.tiles)}
                  >
                    {row.title}
                  </UnstyledButton>
                )}
                <div className={classes.tiles}>
                  {row.tiles.map((tile) => (
                    <BoardTile
                      key={tile.id}
                      tile={tile}
                      column={column.id}
                      wide={wide}
                      chosen={selected.has(tile.id)}
                      lifted={lifted.has(tile.id)}
                      reachable={tile.id === stop}
                      onChoose={choose}
                      onStep={step}
                    />
                  ))}
                </div>
              </div>
            );
          })}
        </div>
      </div>
    </section>
  );
}

/** Left and right go tile by tile, up and down row by row. */
function neighbour(column: BoardColumn, id: string, key: string): string | undefined {
  const tiles = tilesOf(column);
  const at = tiles.findIndex((tile) => tile.id === id);
  if (key === "ArrowRight") return tiles[at + 1]?.id;
  if (key === "ArrowLeft") return tiles[at - 1]?.id;
  if (key === "Home") return tiles[0]?.id;
  if (key === "End") return tiles.at(-1)?.id;
  if (key !== "ArrowUp" && key !== "ArrowDown") return undefined;
  const row = column.rows.findIndex((one) => one.tiles.some((tile) => tile.id === id));
  const place = column.rows[row]?.tiles.findIndex((tile) => tile.id === id) ?? 0;
  const next = column.rows[row + (key === "ArrowDown" ? 1 : -1)]?.tiles;
  return (next?.[place] ?? next?.at(-1))?.id;
}
