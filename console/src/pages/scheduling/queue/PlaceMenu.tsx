/** Everything that can be done with a job in a line, also without dragging. */
import { ActionIcon, Menu } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import {
  ArrowDown,
  ArrowDownToLine,
  ArrowUp,
  ArrowUpToLine,
  CircleStop,
  EllipsisVertical,
  ExternalLink,
  Pin,
  PinOff,
} from "lucide-react";

import { useIsOperator } from "@/app/session";
import { slotsOf, type Place, type Wish } from "@/pages/scheduling/queue/order";
import type { QueueActions } from "@/pages/scheduling/queue/useQueueActions";
import { texts } from "@/pages/scheduling/queue/texts";
import { useTexts } from "@/texts/texts";

export interface PlaceMenuProps {
  readonly place: Place;
  readonly places: readonly Place[];
  readonly isOwn: boolean;
  readonly isMovable: boolean;
  readonly actions: QueueActions;
  readonly onMove: (wish: Wish) => void;
}

export function PlaceMenu({ place, places, isOwn, isMovable, actions, onMove }: PlaceMenuProps) {
  const t = useTexts(texts);
  const isOperator = useIsOperator();
  const { id, name } = place;
  if (id === null || name === null) return null;
  const job = { id, name, undoable: !place.pinned };
  return (
    <Menu position="bottom-end" withinPortal>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" aria-label={t("menuOf", { name })}>
          <EllipsisVertical size={16} aria-hidden />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item
          leftSection={<ExternalLink size={14} />}
          renderRoot={(props) => <Link to="/jobs/$job" params={{ job: id }} {...props} />}
        >
          {t("open")}
        </Menu.Item>
        {isMovable && <Moves place={place} places={places} id={id} onMove={onMove} />}
        {isOperator && <Menu.Divider />}
        {isOperator && (
          <Menu.Item leftSection={<Pin size={14} />} onClick={() => actions.pin([job])}>
            {t("pin")}
          </Menu.Item>
        )}
        {isOperator && place.pinned && (
          <Menu.Item leftSection={<PinOff size={14} />} onClick={() => actions.unpin([job])}>
            {t("unpin")}
          </Menu.Item>
        )}
        {(isOperator || isOwn) && <Menu.Divider />}
        {(isOperator || isOwn) && (
          <Menu.Item color="red" leftSection={<CircleStop size={14} />} onClick={() => actions.stop([job])}>
            {t("stop")}
          </Menu.Item>
        )}
      </Menu.Dropdown>
    </Menu>
  );
}

function Moves({
  place,
  places,
  id,
  onMove,
}: {
  place: Place;
  places: readonly Place[];
  id: string;
  onMove: (wish: Wish) => void;
}) {
  const t = useTexts(texts);
  const own = slotsOf(places, place).flatMap((slot) => places[slot]?.id ?? []);
  const at = own.indexOf(id);
  const moves = [
    { key: "toFront", icon: ArrowUpToLine, target: own[0], where: "before", isPossible: at > 0 },
    { key: "up", icon: ArrowUp, target: own[at - 1], where: "before", isPossible: at > 0 },
    { key: "down", icon: ArrowDown, target: own[at + 1], where: "after", isPossible: at < own.length - 1 },
    { key: "toEnd", icon: ArrowDownToLine, target: own.at(-1), where: "after", isPossible: at < own.length - 1 },
  ] as const;
  return (
    <>
      <Menu.Divider />
      {moves.map(({ key, icon: Icon, target, where, isPossible }) => (
        <Menu.Item
          key={key}
          leftSection={<Icon size={14} />}
          disabled={!isPossible}
          onClick={() => target !== undefined && onMove({ id, target, where })}
        >
          {t(key, { user: place.user })}
        </Menu.Item>
      ))}
    </>
  );
}
