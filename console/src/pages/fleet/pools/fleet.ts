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
  /** The pool that it moves to when its jobs have ended. */
  readonly nextPool: string | undefined;
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
      nextPool: map.next_pools[id],
      health: gpus.health[at] ?? "healthy",
      isHeld: (gpus.allocated[at] ?? 0) > 0,
      isFree: Boolean(gpus.free[at]),
      job: gpus.job[at] ?? null,
      owner: owner === null ? null : (map.owners[owner] ?? null),
    };
  });
}

/** The map after a move to that pool: GPUs that jobs hold are to follow, and those that are there stay. */
export function withMoved(map: Schema<"GpuMapView">, ids: ReadonlySet<string>, pool: string): Schema<"GpuMapView"> {
  const pools = map.pools.includes(pool) ? map.pools : [...map.pools, pool];
  const place = pools.indexOf(pool);
  const { gpus } = map;
  const nextPools = new Map(Object.entries(map.next_pools));
  const after = gpus.pool.map((at, row) => {
    const id = gpus.id[row] ?? "";
    if (!ids.has(id)) return at;
    nextPools.delete(id);
    if (at === place || gpus.allocated[row] === 0) return place;
    nextPools.set(id, pool);
    return at;
  });
  return { ...map, pools, gpus: { ...gpus, pool: after }, next_pools: Object.fromEntries(nextPools) };
}

/** The GPUs of a move by what the move does with them. */
export interface MoveParts {
  readonly now: readonly Gpu[];
  /** Jobs hold them: they follow when these have ended. */
  readonly later: readonly Gpu[];
  /** They are in the pool, and were to leave it. */
  readonly staying: readonly Gpu[];
}

export function partsOf(moving: readonly Gpu[], pool: string): MoveParts {
  const joining = moving.filter((gpu) => gpu.pool !== pool && gpu.nextPool !== pool);
  return {
    now: joining.filter((gpu) => !gpu.isHeld),
    later: joining.filter((gpu) => gpu.isHeld),
    staying: moving.filter((gpu) => gpu.pool === pool && gpu.nextPool !== undefined),
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
  const { now, later, staying } = partsOf(moving, pool);
  const joining = [...now, ...later];
  if (joining.length + staying.length === 0) return t("sameHere", { pool });
  const there = all.filter((gpu) => gpu.pool === pool || gpu.nextPool === pool);
  const models = new Set([...joining, ...there].map((gpu) => gpu.model));
  if (joining.length > 0 && models.size > 1 && pool !== DEFAULT_POOL)
    return t("oneModel", { pool, models: [...models].sort().join(", ") });
  return undefined;
}
