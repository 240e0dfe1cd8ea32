/**
 * Columns of tiles that people choose and move: by mouse, by finger, by keyboard, or by the "Move to…" button.
 * What a column refuses is said while something is held over it; moving itself, with its preview, is the page's.
 */
import { DndContext, DragOverlay, type Announcements, type DragEndEvent, type DragStartEvent } from "@dnd-kit/core";
import { Button, Group, Menu, Text } from "@mantine/core";
import { ChevronDown, MoveRight } from "lucide-react";
import { useMemo, useState } from "react";

import classes from "@/parts/board/Board.module.css";
import { BoardColumnView } from "@/parts/board/BoardColumnView";
import type { BoardColumn } from "@/parts/board/types";
import { columnUnder, useBoardSensors } from "@/parts/board/useBoardSensors";
import { useChoice } from "@/parts/board/useChoice";
import { texts } from "@/parts/board/texts";
import { useFrozen } from "@/parts/useFrozen";
import { useTexts } from "@/texts/texts";

export interface BoardProps {
  readonly columns: readonly BoardColumn[];
  readonly selected: ReadonlySet<string>;
  readonly onSelect: (selected: ReadonlySet<string>) => void;
  /** Why these tiles cannot all go to a column. */
  readonly refusal: (ids: readonly string[], column: string) => string | undefined;
  /** They were dropped on a column, refused or not. */
  readonly onMove: (ids: readonly string[], column: string) => void;
  /** "3 GPUs". */
  readonly describe: (count: number) => string;
  /** One tile per line. */
  readonly wide?: boolean;
}

const NOTHING: ReadonlySet<string> = new Set();

export function Board({ columns: latest, selected, onSelect, refusal, onMove, describe, wide = false }: BoardProps) {
  const t = useTexts(texts);
  const sensors = useBoardSensors();
  const choice = useChoice(selected, onSelect);
  const [lifted, setLifted] = useState<ReadonlySet<string>>(NOTHING);
  // Tiles keep their places under the pointer while some are dragged.
  const columns = useFrozen(latest, lifted.size > 0);
  const announcements = useAnnouncements(columns, lifted, refusal, describe);

  function begin({ active }: DragStartEvent) {
    const id = String(active.id);
    // A tile that is not chosen is dragged alone.
    setLifted(selected.has(id) ? selected : new Set([id]));
  }
  function end({ active, over }: DragEndEvent) {
    setLifted(NOTHING);
    if (over !== null && over.id !== active.data.current?.column) onMove([...lifted], String(over.id));
  }

  return (
    <DndContext
      sensors={sensors}
      collisionDetection={columnUnder}
      onDragStart={begin}
      onDragEnd={end}
      onDragCancel={() => setLifted(NOTHING)}
      accessibility={{ announcements, screenReaderInstructions: { draggable: t("instructions") } }}
    >
      <ChoiceBar {...{ columns, selected, onSelect, refusal, onMove, describe }} />
      <div className={classes.columns}>
        {columns.map((column) => (
          <BoardColumnView
            key={column.id}
            column={column}
            selected={selected}
            choice={choice}
            lifted={lifted}
            wide={wide}
            refusal={lifted.size > 0 ? refusal([...lifted], column.id) : undefined}
          />
        ))}
      </div>
      <DragOverlay dropAnimation={null}>
        {lifted.size > 0 ? <div className={classes.overlay}>{describe(lifted.size)}</div> : null}
      </DragOverlay>
    </DndContext>
  );
}

function ChoiceBar({ columns, selected, onSelect, refusal, onMove, describe }: BoardProps) {
  const t = useTexts(texts);
  const ids = [...selected];
  return (
    <Group gap="xs" className={classes.bar}>
      {ids.length === 0 ? (
        <Text size="sm" c="dimmed">
          {t("hint")}
        </Text>
      ) : (
        <>
          <Text size="sm" fw={550} role="status">
            {t("chosen", { what: describe(ids.length) })}
          </Text>
          <Menu position="bottom-start" width={300}>
            <Menu.Target>
              <Button leftSection={<MoveRight size={15} />} rightSection={<ChevronDown size={14} />}>
                {t("moveTo")}
              </Button>
            </Menu.Target>
            <Menu.Dropdown mah={360} style={{ overflowY: "auto" }}>
              {columns.map((column) => {
                const reason = refusal(ids, column.id);
                return (
                  <Menu.Item key={column.id} disabled={reason !== undefined} onClick={() => onMove(ids, column.id)}>
                    {column.title}
                    {reason !== undefined && (
                      <Text size="xs" c="dimmed" component="div">
                        {reason}
                      </Text>
                    )}
                  </Menu.Item>
                );
              })}
            </Menu.Dropdown>
          </Menu>
          <Button variant="default" onClick={() => onSelect(new Set())}>
            {t("clear")}
          </Button>
        </>
      )}
    </Group>
  );
}

/** The announcements of a screen reader while an item is moved. */
function useAnnouncements(
  columns: readonly BoardColumn[],
  lifted: ReadonlySet<string>,
  refusal: BoardProps["refusal"],
  describe: BoardProps["describe"],
): Announcements {
  const t = useTexts(texts);
  return useMemo(() => {
    const titleOf = (id: string | number) => columns.find((column) => column.id === id)?.title ?? String(id);
    return {
      onDragStart: () => t("pickedUp", { what: describe(Math.max(lifted.size, 1)) }),
      onDragOver: ({ over }) => {
        if (over === null) return undefined;
        const reason = refusal([...lifted], String(over.id));
        return reason === undefined
          ? t("over", { column: titleOf(over.id) })
          : t("overRefused", { column: titleOf(over.id), reason });
      },
      onDragEnd: ({ over }) => (over === null ? t("givenUp") : t("dropped", { column: titleOf(over.id) })),
      onDragCancel: () => t("givenUp"),
    };
  }, [columns, lifted, refusal, describe, t]);
}
