/** Mouse, touch and keyboard. On the keyboard, left and right go from column to column, in the order of reading. */
import {
  KeyboardSensor,
  MouseSensor,
  pointerWithin,
  rectIntersection,
  TouchSensor,
  useSensor,
  useSensors,
  type CollisionDetection,
  type KeyboardCoordinateGetter,
} from "@dnd-kit/core";

/** Inside of a column, not at its edge: it must be the only one that is hit. */
const INSET = 12;

export function useBoardSensors() {
  return useSensors(
    // A click chooses; only a pull begins to drag.
    useSensor(MouseSensor, { activationConstraint: { distance: 6 } }),
    useSensor(TouchSensor, { activationConstraint: { delay: 250, tolerance: 8 } }),
    useSensor(KeyboardSensor, {
      coordinateGetter: nextColumn,
      keyboardCodes: { start: ["Enter"], cancel: ["Escape"], end: ["Enter", "Space"] },
    }),
  );
}

/** The column under the pointer; without a pointer, the one that the dragged item covers most. */
export const columnUnder: CollisionDetection = (situation) => {
  const hit = pointerWithin(situation);
  return hit.length > 0 ? hit : rectIntersection(situation);
};

const nextColumn: KeyboardCoordinateGetter = (event, { context }) => {
  if (event.code !== "ArrowRight" && event.code !== "ArrowLeft") return undefined;
  event.preventDefault();
  const columns = [...context.droppableRects.entries()].sort(
    ([, one], [, other]) => one.top - other.top || one.left - other.left,
  );
  const from = context.over?.id ?? context.active?.data.current?.column;
  const at = columns.findIndex(([id]) => id === from);
  const rect = columns[at + (event.code === "ArrowRight" ? 1 : -1)]?.[1];
  return rect === undefined ? undefined : { x: rect.left + INSET, y: rect.top + INSET };
};
