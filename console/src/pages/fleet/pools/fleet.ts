/** The GPUs of the map as things, and the rules of moving them, checked before the request. */
import type { Schema } from "@/api/client";
import type { Say } from "@/texts/texts";
import type { texts } from "@/pages/fleet/pools/texts";

export const DEFAULT_POOL = "default";

export interface Gpu {
  readonly id: string;
  readonly node: string;
  readonly index: number;
  readonly model: string;
  readonly pool: string;
  readonly health: string;
  readonly isHeld: boolean;
  /** A job could start on it now: not held, healthy, on a ready node, not reserved. */
  readonly isFree: boolean;
  readonly job: string | null;
  readonly owner: string | null;
}

export function gpusOf(map: Schema<"GpuMapView">): readonly Gpu[] {
  const { gpus } = map;
  return gpus.id.map((id, at) => {
    const owner = gpus.owner[at] ?? null;
    return {
      id,
      node: map.nodes[gpus.node[at] ?? -1]?.id ?? "",
      index: gpus.index[at] ?? 0,
      model: map.models[gpus.model[at] ?? -1] ?? "",
      pool: map.pools[gpus.pool[at] ?? -1] ?? "",
      health: gpus.health[at] ?? "healthy",
      isHeld: (gpus.allocated[at] ?? 0) > 0,
      isFree: Boolean(gpus.free[at]),
      job: gpus.job[at] ?? null,
      owner: owner === null ? null : (map.owners[owner] ?? null),
    };
  });
}

/** The map with these GPUs in that pool. */
export function withMoved(map: Schema<"GpuMapView">, ids: ReadonlySet<string>, pool: string): Schema<"GpuMapView"> {
  const pools = map.pools.includes(pool) ? map.pools : [...map.pools, pool];
  const place = pools.indexOf(pool);
  return {
    ...map,
    pools,
    gpus: { ...map.gpus, pool: map.gpus.pool.map((at, row) => (ids.has(map.gpus.id[row] ?? "") ? place : at)) },
  };
}

/** How many GPUs there are of each model, the most frequent first. */
export function modelsOf(gpus: readonly Gpu[]): readonly (readonly [model: string, count: number])[] {
  const counts = new Map<string, number>();
  for (const gpu of gpus) counts.set(gpu.model, (counts.get(gpu.model) ?? 0) + 1);
  return [...counts].sort(([one, n], [other, m]) => m - n || one.localeCompare(other));
}

export function byPool(gpus: readonly Gpu[]): ReadonlyMap<string, readonly Gpu[]> {
  return grouped(gpus, (gpu) => gpu.pool);
}

/** Things with the same key together, in the order of their first ones. */
export function grouped<T>(things: readonly T[], key: (thing: T) => string): ReadonlyMap<string, readonly T[]> {
  const groups = new Map<string, T[]>();
  for (const thing of things) {
    const name = key(thing);
    const group = groups.get(name);
    if (group === undefined) groups.set(name, [thing]);
    else group.push(thing);
  }
  return groups;
}

/** Why these GPUs cannot go to a pool, in words; undefined if they can. */
export function moveRefusal(
  t: Say<typeof texts>,
  all: readonly Gpu[],
  moving: readonly Gpu[],
  pool: string,
): string | undefined {
  const joining = moving.filter((gpu) => gpu.pool !== pool);
  if (joining.length === 0) return t("sameHere", { pool });
  const models = new Set([...joining, ...all.filter((gpu) => gpu.pool === pool)].map((gpu) => gpu.model));
  if (models.size > 1 && pool !== DEFAULT_POOL) return t("oneModel", { pool, models: [...models].sort().join(", ") });
  const held = joining.filter((gpu) => gpu.isHeld);
  if (held.length === 0) return undefined;
  const jobs = [...new Set(held.map((gpu) => gpu.job ?? "?"))];
  return t("held", {
    n: held.length,
    gpus: held
      .map((gpu) => gpu.id)
      .slice(0, 5)
      .join(", "),
    jobs: jobs.slice(0, 5).join(", "),
  });
}
