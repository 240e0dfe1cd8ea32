import { Progress, Skeleton, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { memo, useMemo } from "react";

import { useMay } from "@/app/session";
import { ownerColors } from "@/pages/fleet/overview/map/colors";
import { gpusOf, heldByOwner, type MapData } from "@/pages/fleet/overview/map/gpus";
import classes from "@/pages/fleet/overview/Overview.module.css";
import { texts } from "@/pages/fleet/overview/texts";
import { Panel } from "@/parts/Panel";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

const MOST = 8;

/** The number of GPUs that each user holds, in the colours of the map. */
export const Users = memo(function Users({ data }: { data: MapData | undefined }) {
  const t = useTexts(texts);
  const held = useMemo(() => (data === undefined ? undefined : heldByOwner(gpusOf(data))), [data]);
  const colors = useMemo(() => ownerColors(held?.map(([owner]) => owner) ?? []), [held]);
  const most = held?.[0]?.[1] ?? 1;
  return (
    <Panel title={t("users")}>
      {held === undefined && <Skeleton h={80} />}
      {held?.length === 0 && (
        <Text size="sm" c="dimmed">
          {t("allFree")}
        </Text>
      )}
      <ul className={classes.list}>
        {held?.slice(0, MOST).map(([owner, gpus]) => (
          <Owner key={owner} owner={owner} gpus={gpus} part={gpus / most} color={colors.get(owner)} />
        ))}
      </ul>
      {held !== undefined && held.length > MOST && (
        <Text size="xs" c="dimmed">
          {t("more", { n: held.length - MOST })}
        </Text>
      )}
    </Panel>
  );
});

function Owner({ owner, gpus, part, color }: { owner: string; gpus: number; part: number; color: string | undefined }) {
  const format = useFormat();
  const mayOpen = useMay("see-others-jobs");
  return (
    <li className={classes.owner}>
      <Text size="sm" truncate>
        {mayOpen ? (
          <Link to="/jobs" search={{ user: owner }} className={classes.link}>
            {owner}
          </Link>
        ) : (
          owner
        )}
      </Text>
      <Progress value={part * 100} color={color} size={8} aria-hidden />
      <Text size="sm" ta="right" className="num">
        {format.number(gpus)}
      </Text>
    </li>
  );
}
