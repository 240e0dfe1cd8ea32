/** The map of all GPUs, joined from the pages that the API cuts a large fleet into. */
import type { Schema } from "@/api/client";

export type GpuMap = Schema<"GpuMapView">;

/** One map of several pages; names and nodes of later pages get indexes behind those of earlier ones. */
export function joined(pages: readonly GpuMap[]): GpuMap | undefined {
  const [first, ...rest] = pages;
  if (first === undefined || rest.length === 0) return first;
  const nodes: GpuMap["nodes"] = [];
  const models = new Names();
  const owners = new Names();
  const pools = new Names();
  const gpus = Object.fromEntries(Object.keys(first.gpus).map((column) => [column, [] as unknown[]]));
  for (const page of pages) {
    const before = nodes.length;
    nodes.push(...page.nodes);
    const model = models.add(page.models);
    const owner = owners.add(page.owners);
    const pool = pools.add(page.pools);
    const moved: Partial<GpuMap["gpus"]> = {
      node: page.gpus.node.map((place) => place + before),
      model: page.gpus.model.map((place) => model[place] ?? 0),
      pool: page.gpus.pool.map((place) => pool[place] ?? 0),
      owner: page.gpus.owner.map((place) => (place === null ? null : (owner[place] ?? null))),
    };
    for (const [column, values] of Object.entries({ ...page.gpus, ...moved })) {
      const all = gpus[column];
      for (const value of values) all?.push(value);
    }
  }
  return {
    at: first.at,
    nodes,
    models: models.all,
    owners: owners.all,
    pools: pools.all,
    gpus: gpus as unknown as GpuMap["gpus"],
    next_pools: Object.assign({}, ...pages.map((page) => page.next_pools)) as GpuMap["next_pools"],
    next_cursor: null,
  };
}

class Names {
  readonly all: string[] = [];
  private readonly places = new Map<string, number>();

  /** The new index of each of a page's names. */
  add(names: readonly string[]): readonly number[] {
    return names.map((name) => {
      const known = this.places.get(name);
      if (known !== undefined) return known;
      this.places.set(name, this.all.length);
      this.all.push(name);
      return this.all.length - 1;
    });
  }
}
