/** How many GPUs of each model are free in a pool: what could start at once. */
import { Group, Skeleton, Text } from "@mantine/core";
import { useMemo } from "react";

import { type Schema } from "@/api/client";
import { useGpuMap } from "@/api/useGpuMap";
import { useCluster } from "@/app/cluster";
import { texts } from "@/pages/scheduling/queue/texts";
import { Meter } from "@/parts/Meter";
import { useTexts } from "@/texts/texts";

interface ModelCount {
  readonly model: string;
  readonly free: number;
  readonly total: number;
}

export function FreeGpus({ pool }: { pool: string }) {
  const t = useTexts(texts);
  const { data: map } = useGpuMap();
  const cluster = useCluster();
  const counts = useMemo(
    () => (map === undefined ? undefined : freePerModel(map, pool, cluster)),
    [map, pool, cluster],
  );
  if (counts === undefined) return <Skeleton h={18} w={220} />;
  return (
    <Group gap="lg" role="group" aria-label={t("freeGpus")}>
      {counts.map(({ model, free, total }) => (
        <Group key={model} gap={8} wrap="nowrap">
          <Text size="sm" fw={500}>
            {model}
          </Text>
          <Meter
            value={total === 0 ? 0 : free / total}
            label={t("freeOf", { free, total, model })}
            text={t("freeShort", { free, total })}
          />
        </Group>
      ))}
    </Group>
  );
}

/** The server decides which GPUs are free. */
export function freePerModel(map: Schema<"GpuMapView">, pool: string, cluster = ""): readonly ModelCount[] {
  const counts = new Map<string, { free: number; total: number }>();
  for (const [at, model] of map.gpus.model.entries()) {
    const node = map.nodes[map.gpus.node[at] ?? -1];
    if (map.pools[map.gpus.pool[at] ?? -1] !== pool) continue;
    if (cluster !== "" && node?.cluster !== cluster) continue;
    const name = map.models[model] ?? "";
    const count = counts.get(name) ?? { free: 0, total: 0 };
    count.total += 1;
    if (map.gpus.free[at] === true) count.free += 1;
    counts.set(name, count);
  }
  return [...counts]
    .map(([model, count]) => ({ model, ...count }))
    .sort((left, right) => left.model.localeCompare(right.model));
}
