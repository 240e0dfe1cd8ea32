/** One place in a line: who, how large, since when, until when, and why here. */
import { ActionIcon, Badge, Checkbox, Text, Tooltip } from "@mantine/core";
import { useSortable } from "@dnd-kit/sortable";
import { CSS } from "@dnd-kit/utilities";
import { Link } from "@tanstack/react-router";
import { GripVertical, Pin } from "lucide-react";
import type { ReactNode } from "react";

import classes from "@/pages/scheduling/queue/queue.module.css";
import type { Place, Row } from "@/pages/scheduling/queue/order";
import { texts } from "@/pages/scheduling/queue/texts";
import { Faint } from "@/parts/DataTable";
import { Moment, useNow } from "@/parts/Moment";
import { startOf } from "@/parts/startOf";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

export interface PlaceRowProps {
  readonly row: Row;
  readonly reason: string;
  readonly isOwn: boolean;
  readonly isMovable: boolean;
  /** While another job is held: whether that one can go here. */
  readonly isAway: boolean;
  /** While this one is held over a place that it cannot have. */
  readonly isForbidden: boolean;
  readonly isChosen: boolean | undefined;
  readonly onChoose: () => void;
  readonly tools: ReactNode;
}

export function PlaceRow(props: PlaceRowProps) {
  const t = useTexts(texts);
  const { key, place } = props.row;
  const name = useNameOf()(place);
  const sortable = useSortable({
    id: key,
    disabled: { draggable: !props.isMovable, droppable: false },
    attributes: { roleDescription: t("sortable") },
  });
  const looks = [
    classes.row,
    props.isOwn && classes.own,
    sortable.isDragging && classes.held,
    props.isForbidden && classes.forbidden,
    props.isAway && classes.away,
  ];
  return (
    <li
      ref={sortable.setNodeRef}
      data-key={key}
      className={looks.filter(Boolean).join(" ")}
      style={{ transform: CSS.Translate.toString(sortable.transform), transition: sortable.transition }}
      aria-label={`${t("placeOf", { n: place.position })}: ${name}`}
    >
      {props.isChosen !== undefined && (
        <span className={classes.areaChoose}>
          {place.id !== null && (
            <Checkbox size="xs" aria-label={t("choose", { name })} checked={props.isChosen} onChange={props.onChoose} />
          )}
        </span>
      )}
      <span className={classes.areaGrip}>
        {props.isMovable ? (
          <ActionIcon
            variant="subtle"
            color="gray"
            className={classes.grip}
            ref={sortable.setActivatorNodeRef}
            {...sortable.attributes}
            {...sortable.listeners}
            aria-label={t("move", { name })}
          >
            <GripVertical size={16} aria-hidden />
          </ActionIcon>
        ) : (
          place.pinned && <Pin size={15} aria-hidden style={{ marginLeft: 6 }} />
        )}
      </span>
      <Text size="sm" c="dimmed" className={`num ${classes.areaPosition} ${classes.right}`} aria-hidden>
        {place.position}
      </Text>
      <JobCell place={place} isOwn={props.isOwn} name={name} />
      <Text size="sm" className={`num ${classes.areaSize} ${classes.right}`}>
        <Size place={place} />
      </Text>
      <Text size="sm" c="dimmed" className={`num ${classes.areaWaits} ${classes.right}`}>
        <Waited since={place.queued_at} />
      </Text>
      <Text size="sm" component="div" className={`${classes.areaStarts} ${classes.right}`}>
        <Start place={place} />
      </Text>
      <Text size="xs" c="dimmed" className={classes.areaReason}>
        {props.reason}
      </Text>
      <span className={classes.areaTools}>{props.tools}</span>
    </li>
  );
}

function JobCell({ place, isOwn, name }: { place: Place; isOwn: boolean; name: string }) {
  const t = useTexts(texts);
  return (
    <div className={classes.areaJob}>
      <Text size="sm" fw={place.id === null ? 400 : 550} c={place.id === null ? "dimmed" : undefined} truncate>
        {place.id === null ? (
          name
        ) : (
          <Link to="/jobs/$job" params={{ job: place.id }} style={{ color: "inherit", textDecoration: "none" }}>
            {name}
          </Link>
        )}
      </Text>
      {place.id !== null && (
        <Faint>
          {place.id} · {place.user}
          {isOwn && (
            <Badge size="xs" variant="light" tt="none" ml={6}>
              {t("yours")}
            </Badge>
          )}
        </Faint>
      )}
    </div>
  );
}

export function useNameOf(): (place: Place) => string {
  const t = useTexts(texts);
  return (place) => place.name ?? t("hiddenJob", { user: place.user });
}

/** GPUs, for a gang those of each node. */
export function Size({ place }: { place: { readonly gpus: number; readonly nodes: number } }) {
  const t = useTexts(texts);
  if (place.gpus === 0) return <>{t("cpuJob")}</>;
  return (
    <>{place.nodes > 1 ? t("gpuNodes", { n: place.nodes, gpus: place.gpus }) : t("gpuCount", { n: place.gpus })}</>
  );
}

function Waited({ since }: { since: string | null }) {
  const format = useFormat();
  const now = useNow();
  if (since === null) return <>–</>;
  const seconds = Math.max(0, (Math.max(now, Date.now() - 10_000) - new Date(since).getTime()) / 1000);
  return (
    <Tooltip label={format.dateTime(since)}>
      <time dateTime={since}>{format.duration(seconds)}</time>
    </Tooltip>
  );
}

function Start({ place }: { place: Place }) {
  const t = useTexts(texts);
  const format = useFormat();
  const { planned_start: planned, estimated_start: estimate } = place;
  const start = startOf(planned, estimate);
  if (start?.isBound)
    return (
      <Tooltip label={t("plannedHint")}>
        <span>
          <Moment at={start.at} /> {t("atLatest")}
        </span>
      </Tooltip>
    );
  if (estimate !== null)
    return (
      <Tooltip label={t("estimate", { p50: format.dateTime(estimate.p50), p90: format.dateTime(estimate.p90) })}>
        <span>
          {t("about")} <Moment at={estimate.p50} />
        </span>
      </Tooltip>
    );
  return (
    <Tooltip label={t("notPlannedHint")}>
      <Text size="xs" c="dimmed" span>
        {t("notPlanned")}
      </Text>
    </Tooltip>
  );
}
