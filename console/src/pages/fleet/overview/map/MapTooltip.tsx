import { Text } from "@mantine/core";

import { factsOf } from "@/pages/fleet/overview/map/facts";
import classes from "@/pages/fleet/overview/map/GpuMap.module.css";
import type { Gpu } from "@/pages/fleet/overview/map/gpus";
import type { Box } from "@/pages/fleet/overview/map/layout";
import { useSpeech } from "@/pages/fleet/overview/map/useSpeech";

const WIDTH = 232;
const AWAY = 10;

/** All facts of one GPU beside it, on the side where there is room. */
export function MapTooltip({ gpu, cell, width }: { gpu: Gpu; cell: Box; width: number }) {
  const speech = useSpeech();
  const isRight = cell.x + cell.width + AWAY + WIDTH <= width;
  const isLeft = cell.x - AWAY - WIDTH >= 0;
  const left = isRight
    ? cell.x + cell.width + AWAY
    : isLeft
      ? cell.x - AWAY - WIDTH
      : Math.max(0, Math.min(cell.x, width - WIDTH));
  const top = isRight || isLeft ? cell.y - 8 : cell.y + cell.height + AWAY;
  return (
    <div
      className={classes.tooltip}
      style={{ transform: `translate(${left}px, ${top}px)` }}
      role="tooltip"
      data-gpu={gpu.id}
    >
      <Text fw={600} size="sm">
        {gpu.id}
      </Text>
      <dl className={classes.facts}>
        {factsOf(gpu, speech).map((fact) => (
          <div key={fact.name} style={{ display: "contents" }}>
            <dt>{fact.name}</dt>
            <dd>{fact.value}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}
