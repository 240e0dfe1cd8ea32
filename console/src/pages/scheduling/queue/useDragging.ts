/** Dragging within a line: by pointer or keyboard, spoken, and only where the rules allow it. */
import {
  KeyboardSensor,
  PointerSensor,
  useSensor,
  useSensors,
  type Announcements,
  type DndContextProps,
  type KeyboardCoordinateGetter,
  type UniqueIdentifier,
} from "@dnd-kit/core";
import { arrayMove, type SortingStrategy } from "@dnd-kit/sortable";
import { notifications } from "@mantine/notifications";
import { useMemo, useState } from "react";

import { areOfOneSequence, slotsOf, wishOf, type Place, type Row, type Wish } from "@/pages/scheduling/queue/order";
import { useNameOf } from "@/pages/scheduling/queue/PlaceRow";
import { texts } from "@/pages/scheduling/queue/texts";
import { capital, useTexts } from "@/texts/texts";

export interface Dragging {
  readonly context: DndContextProps;
  readonly strategy: SortingStrategy;
  /** The job that is held, and why it cannot be dropped where it is at present. */
  readonly held: Place | undefined;
  readonly refusal: string | undefined;
}

export function useDragging(
  rows: readonly Row[],
  onWish: (wish: Wish) => void,
  /** Whether a job is held: until it is dropped, rows keep their places under the pointer. */
  onHold: (isHeld: boolean) => void,
): Dragging {
  const t = useTexts(texts);
  const nameOf = useNameOf();
  const [heldKey, setHeldKey] = useState<UniqueIdentifier>();
  const [overKey, setOverKey] = useState<UniqueIdentifier>();
  const places = useMemo(() => rows.map((row) => row.place), [rows]);
  const placeOf = (key: UniqueIdentifier | undefined) => rows.find((row) => row.key === key)?.place;

  function refusalOf(held: Place | undefined, over: Place | undefined): string | undefined {
    if (held === undefined || over === undefined || areOfOneSequence(held, over)) return undefined;
    return held.user === over.user ? t("notPinned") : t("notOthers", { user: over.user });
  }

  const sensors = useSensors(
    useSensor(PointerSensor, { activationConstraint: { distance: 4 } }),
    useSensor(KeyboardSensor, { coordinateGetter: useMemo(() => alongOwn(rows), [rows]) }),
  );

  const announcements: Announcements = {
    onDragStart: ({ active }) => said(placeOf(active.id), (held) => t("pickedUp", { name: nameOf(held) })),
    onDragOver: ({ active, over }) => {
      const held = placeOf(active.id);
      const target = placeOf(over?.id);
      if (held === undefined || target === undefined) return undefined;
      if (held === target) return t("atHome", { name: nameOf(held), n: held.position });
      const why = refusalOf(held, target);
      if (why !== undefined) return t("overForbidden", { n: target.position, why });
      return t("over", { name: nameOf(held), n: target.position, target: nameOf(target) });
    },
    onDragEnd: ({ active, over }) => {
      const held = placeOf(active.id);
      const target = placeOf(over?.id);
      if (held === undefined) return undefined;
      if (target === undefined || target === held || !areOfOneSequence(held, target))
        return t("putBack", { name: nameOf(held) });
      return t("dropped", { name: nameOf(held), n: target.position });
    },
    onDragCancel: ({ active }) => said(placeOf(active.id), (held) => t("putBack", { name: nameOf(held) })),
  };

  function drop(activeKey: UniqueIdentifier, target: Place | undefined) {
    const held = placeOf(activeKey);
    setHeldKey(undefined);
    setOverKey(undefined);
    onHold(false);
    if (held === undefined || target === undefined || held === target) return;
    const why = refusalOf(held, target);
    if (why !== undefined)
      notifications.show({
        title: t("notMoved"),
        message: capital(why),
        color: "yellow",
        withBorder: true,
        autoClose: 8_000,
        role: "alert",
      });
    else if (held.id !== null && target.id !== null) onWish(wishOf(places, held.id, target.id));
  }

  const held = placeOf(heldKey);
  return {
    held,
    refusal: refusalOf(held, placeOf(overKey)),
    strategy: useMemo(() => amongOwn(places), [places]),
    context: {
      sensors,
      accessibility: { announcements, screenReaderInstructions: { draggable: t("instructions") } },
      onDragStart: ({ active }) => {
        setHeldKey(active.id);
        onHold(true);
      },
      onDragOver: ({ over }) => setOverKey(over?.id),
      onDragEnd: ({ active, over }) => drop(active.id, placeOf(over?.id)),
      onDragCancel: () => {
        onHold(false);
        setHeldKey(undefined);
        setOverKey(undefined);
      },
    },
  };
}

/** While a job is held, those of the same user make room in their own places; jobs of other users do not move. */
function amongOwn(places: readonly Place[]): SortingStrategy {
  return ({ rects, activeIndex, overIndex, index }) => {
    const held = places[activeIndex];
    const over = places[overIndex];
    const here = places[index];
    if (
      held === undefined ||
      over === undefined ||
      here === undefined ||
      !areOfOneSequence(held, over) ||
      !areOfOneSequence(held, here)
    )
      return null;
    const slots = slotsOf(places, held);
    const order = arrayMove([...slots], slots.indexOf(activeIndex), slots.indexOf(overIndex));
    const from = rects[index];
    const to = rects[slots[order.indexOf(index)] ?? index];
    return from === undefined || to === undefined ? null : { x: 0, y: to.top - from.top, scaleX: 1, scaleY: 1 };
  };
}

/** The arrow keys step over what cannot be changed, straight to the next place that can be had. */
function alongOwn(rows: readonly Row[]): KeyboardCoordinateGetter {
  return (event, { context }) => {
    const step = event.code === "ArrowDown" ? 1 : event.code === "ArrowUp" ? -1 : 0;
    const held = rows.find((row) => row.key === context.active?.id);
    if (step === 0 || held === undefined) return undefined;
    event.preventDefault();
    const own = rows.filter((row) => areOfOneSequence(row.place, held.place));
    const at = own.findIndex((row) => row.key === (context.over?.id ?? held.key));
    const next = own[Math.max(0, Math.min(own.length - 1, at + step))];
    const rect = next === undefined ? undefined : context.droppableRects.get(next.key);
    return rect === undefined ? undefined : { x: rect.left, y: rect.top };
  };
}

function said(place: Place | undefined, text: (place: Place) => string): string | undefined {
  return place === undefined ? undefined : text(place);
}
