/** The map's GPUs, out of the columns in which they travel, and the choice of those that are shown. */
import type { Schema } from "@/api/client";

export type MapData = Schema<"GpuMapView">;

export interface Gpu {
  readonly id: string;
  readonly node: string;
  readonly nodeState: Schema<"NodeState">;
  readonly index: number;
  readonly model: string;
  readonly pool: string;
  readonly health: Schema<"GpuHealth">;
  /** The part that jobs hold, 0 to 1. */
  readonly allocated: number;
  readonly owner: string | null;
  /** The id of the job, if the user may see it. */
  readonly job: string | null;
  readonly utilization: number | null;
  /** The used part, 0 to 1. */
  readonly memory: number | null;
  readonly power: number | null;
  readonly temperature: number | null;
  /** Others hold it, outside of corral. */
  readonly taken: boolean;
  /** A job could start on it now. */
  readonly free: boolean;
  readonly stale: boolean;
}

export function gpusOf(data: MapData): Gpu[] {
  const { gpus, nodes, models, pools, owners } = data;
  return gpus.id.map((id, place) => {
    const node = nodes[gpus.node[place] ?? -1];
    const owner = gpus.owner[place] ?? null;
    return {
      id,
      node: node?.id ?? "",
      nodeState: node?.state ?? "down",
      index: gpus.index[place] ?? 0,
      model: models[gpus.model[place] ?? -1] ?? "",
      pool: pools[gpus.pool[place] ?? -1] ?? "",
      health: gpus.health[place] ?? "healthy",
      allocated: gpus.allocated[place] ?? 0,
      owner: owner === null ? null : (owners[owner] ?? null),
      job: gpus.job[place] ?? null,
      utilization: gpus.utilization[place] ?? null,
      memory: gpus.memory[place] ?? null,
      power: gpus.power[place] ?? null,
      temperature: gpus.temperature[place] ?? null,
      taken: gpus.taken[place] ?? false,
      free: gpus.free[place] ?? false,
      stale: gpus.stale[place] ?? true,
    };
  });
}

/** Only the GPUs of one cluster; an empty name is all of them. */
export function ofCluster(data: MapData, cluster: string): MapData {
  if (cluster === "") return data;
  const isThere = data.gpus.node.map((node) => data.nodes[node]?.cluster === cluster);
  const columns = Object.entries(data.gpus).map(([name, column]: [string, unknown[]]) => [
    name,
    column.filter((_, place) => isThere[place]),
  ]);
  return { ...data, gpus: Object.fromEntries(columns) as MapData["gpus"] };
}

export interface Choice {
  readonly model: string;
  readonly pool: string;
  /** A part of a node's, a user's, a job's or a GPU's name. */
  readonly q: string;
}

/** An empty text chooses everything. */
export function chosen(gpus: readonly Gpu[], { model, pool, q }: Choice): readonly Gpu[] {
  const text = q.trim().toLowerCase();
  if (model === "" && pool === "" && text === "") return gpus;
  return gpus.filter(
    (gpu) =>
      (model === "" || gpu.model === model) &&
      (pool === "" || gpu.pool === pool) &&
      (text === "" || [gpu.id, gpu.node, gpu.owner, gpu.job].some((name) => name?.toLowerCase().includes(text))),
  );
}

export interface NodeRun {
  readonly node: string;
  readonly state: Gpu["nodeState"];
  readonly count: number;
}

/** How many neighbours in the list are on the same node. */
export function runsOf(gpus: readonly Gpu[]): NodeRun[] {
  const runs: { node: string; state: Gpu["nodeState"]; count: number }[] = [];
  for (const gpu of gpus) {
    const last = runs.at(-1);
    if (last?.node === gpu.node) last.count += 1;
    else runs.push({ node: gpu.node, state: gpu.nodeState, count: 1 });
  }
  return runs;
}

/** GPUs that each user's jobs hold, most first. */
export function heldByOwner(gpus: readonly Gpu[]): [owner: string, held: number][] {
  const held = new Map<string, number>();
  for (const gpu of gpus) if (gpu.owner !== null) held.set(gpu.owner, (held.get(gpu.owner) ?? 0) + gpu.allocated);
  return [...held].sort((left, right) => right[1] - left[1] || (left[0] < right[0] ? -1 : 1));
}
