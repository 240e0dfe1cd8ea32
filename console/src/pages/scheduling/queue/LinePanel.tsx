/** One line: jobs that wait for the same, in the order in which they go. */
import { closestCenter, DndContext } from "@dnd-kit/core";
import { SortableContext } from "@dnd-kit/sortable";
import { Affix, Alert, Button, Group, Text } from "@mantine/core";
import { Info, TriangleAlert } from "lucide-react";
import { useMemo, useState } from "react";

import { useOrderingPolicy } from "@/api/options";
import { useCluster } from "@/app/cluster";
import { useIsOperator, useMe } from "@/app/session";
import {
  areOfOneSequence,
  mayRunOn,
  rowsOf,
  undoOf,
  withWish,
  type Line,
  type Place,
  type Row,
  type Wish,
} from "@/pages/scheduling/queue/order";
import { PlaceMenu } from "@/pages/scheduling/queue/PlaceMenu";
import { PlaceRow } from "@/pages/scheduling/queue/PlaceRow";
import classes from "@/pages/scheduling/queue/queue.module.css";
import { useDragging } from "@/pages/scheduling/queue/useDragging";
import { useGlide } from "@/pages/scheduling/queue/useGlide";
import { useMove, type QueueActions } from "@/pages/scheduling/queue/useQueueActions";
import { useReason } from "@/pages/scheduling/queue/useReason";
import { texts } from "@/pages/scheduling/queue/texts";
import { Panel } from "@/parts/Panel";
import { useFrozen } from "@/parts/useFrozen";
import { useFormat } from "@/texts/format";
import { capital, useTexts } from "@/texts/texts";

const FIRST = 60;
const MORE = 200;

export interface LinePanelProps {
  readonly line: Line;
  readonly policy: string;
  readonly onlyMine: boolean;
  readonly chosen: ReadonlySet<string>;
  readonly onChoose: (id: string) => void;
  readonly actions: QueueActions;
}

export function LinePanel({ line: latest, policy, onlyMine, chosen, onChoose, actions }: LinePanelProps) {
  const t = useTexts(texts);
  const me = useMe();
  const isOperator = useIsOperator();
  const format = useFormat();
  const reasonOf = useReason(policy);
  const hasOwnOrder = useOrderingPolicy(policy)?.uses_own_order === true;
  const [count, setCount] = useState(FIRST);
  const [wish, setWish] = useState<Wish>();
  const move = useMove();
  const [isHeld, setIsHeld] = useState(false);
  const line = useFrozen(latest, isHeld);
  const places = useMemo(() => withWish(line.jobs, wish), [line.jobs, wish]);
  const cluster = useCluster();
  const rows = useMemo(
    () =>
      rowsOf(places).filter(
        ({ place }, index) =>
          mayRunOn(place, cluster) && (onlyMine ? place.user === me.name : index < count || place.user === me.name),
      ),
    [places, count, onlyMine, me.name, cluster],
  );
  const list = useGlide(
    rows.map((row) => row.key),
    wish !== undefined,
  );

  function send(next: Wish) {
    const name = (id: string) => places.find((place) => place.id === id)?.name ?? id;
    setWish(next);
    // What was wished for is shown until the server's own order is there, or its refusal.
    move.mutate(
      { ...next, name: name(next.id), targetName: name(next.target), undo: undoOf(line.jobs, next) },
      { onSettled: () => setWish(undefined) },
    );
  }

  const dragging = useDragging(rows, send, setIsHeld);
  const mayMove = (place: Place) =>
    hasOwnOrder &&
    (isOperator || place.user === me.name) &&
    rows.some((row) => row.place.id !== place.id && areOfOneSequence(place, row.place));
  const title = t("lineTitle", { model: modelName(line.model, t("anyGpu"), t("cpuOnly")), line: t(line.line) });
  const hidden = onlyMine ? 0 : line.jobs.length - count;
  if (rows.length === 0) return null;
  return (
    <Panel
      title={title}
      tools={
        <Text size="sm" c="dimmed">
          {t("lineLength", { n: line.length })}
        </Text>
      }
      p="sm"
    >
      {dragging.held !== undefined && <DragNote user={dragging.held.user} refusal={dragging.refusal} />}
      <DndContext {...dragging.context} collisionDetection={closestCenter}>
        <SortableContext items={rows.map((row) => row.key)} strategy={dragging.strategy}>
          <div className={isOperator ? classes.choosable : undefined}>
            <Head />
            <ol className={classes.rows} ref={list} aria-label={title}>
              {rows.map((row, index) => [
                <Gap
                  key={`gap-${row.key}`}
                  missing={row.place.position - (rows[index - 1]?.place.position ?? 0) - 1}
                />,
                <PlaceRow
                  key={row.key}
                  row={row}
                  reason={reasonOf(row.place)}
                  isOwn={row.place.user === me.name}
                  isMovable={mayMove(row.place) && !move.isPending}
                  isAway={dragging.held !== undefined && !areOfOneSequence(dragging.held, row.place)}
                  isForbidden={dragging.held?.id === row.place.id && dragging.refusal !== undefined}
                  isChosen={isOperator ? chosen.has(row.key) : undefined}
                  onChoose={() => onChoose(row.key)}
                  tools={
                    <PlaceMenu
                      place={row.place}
                      places={rows.map((one: Row) => one.place)}
                      isOwn={row.place.user === me.name}
                      isMovable={mayMove(row.place)}
                      actions={actions}
                      onMove={send}
                    />
                  }
                />,
              ])}
              <Behind missing={line.length - (rows.at(-1)?.place.position ?? 0)} />
            </ol>
          </div>
        </SortableContext>
      </DndContext>
      {hidden > 0 && (
        <Group justify="center" mt="xs">
          <Button variant="default" onClick={() => setCount(count + MORE)}>
            {t("showMore", { n: format.number(Math.min(MORE, hidden)) })}
          </Button>
        </Group>
      )}
    </Panel>
  );
}

export function modelName(model: string, any: string, cpu: string): string {
  if (model === "any") return any;
  return model === "cpu" ? cpu : model.split("|").join(" / ");
}

function Head() {
  const t = useTexts(texts);
  return (
    <div className={classes.head} aria-hidden>
      <span className={`${classes.areaPosition} ${classes.right}`}>{t("position")}</span>
      <span className={classes.areaJob}>{t("job")}</span>
      <span className={`${classes.areaSize} ${classes.right}`}>{t("size")}</span>
      <span className={`${classes.areaWaits} ${classes.right}`}>{t("waits")}</span>
      <span className={`${classes.areaStarts} ${classes.right}`}>{t("starts")}</span>
      <span className={classes.areaReason}>{t("reason")}</span>
      <span className={classes.areaTools} />
    </div>
  );
}

function Gap({ missing }: { missing: number }) {
  const t = useTexts(texts);
  return missing > 0 ? <li className={classes.gap}>⋯ {t("othersBetween", { n: missing })}</li> : null;
}

function Behind({ missing }: { missing: number }) {
  const t = useTexts(texts);
  return missing > 0 ? <li className={classes.gap}>⋯ {t("othersBehind", { n: missing })}</li> : null;
}

/** Said to the eye what the announcements say to the ear. */
function DragNote({ user, refusal }: { user: string; refusal: string | undefined }) {
  const t = useTexts(texts);
  return (
    // Above the page, so that nothing in it shifts under the pointer.
    <Affix
      position={{ bottom: 20, left: 0, right: 0 }}
      style={{ pointerEvents: "none", display: "flex", justifyContent: "center" }}
      aria-hidden
    >
      <Alert
        variant="filled"
        maw={560}
        color={refusal === undefined ? "blue" : "red"}
        icon={refusal === undefined ? <Info size={16} /> : <TriangleAlert size={16} />}
        py={8}
      >
        {refusal === undefined ? t("dropHere", { user }) : capital(refusal)}
      </Alert>
    </Affix>
  );
}
