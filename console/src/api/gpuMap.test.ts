import { expect, test } from "vitest";

import { joined, type GpuMap } from "@/api/gpuMap";

function page(
  nodes: readonly string[],
  models: readonly string[],
  owners: readonly string[],
  pools: readonly string[],
): GpuMap {
  const each = nodes.map((_, place) => place);
  return {
    at: "2026-01-01T00:00:00Z",
    nodes: nodes.map((id) => ({ id, state: "ready", cluster: "local" })),
    models: [...models],
    owners: [...owners],
    pools: [...pools],
    gpus: {
      id: nodes.map((id) => `${id}/0`),
      node: each,
      index: each.map(() => 0),
      model: each.map((place) => place % models.length),
      pool: each.map((place) => place % pools.length),
      health: each.map(() => "healthy"),
      allocated: each.map(() => 1),
      owner: each.map((place) => (place < owners.length ? place : null)),
      job: each.map(() => null),
      utilization: each.map(() => null),
      memory: each.map(() => null),
      temperature: each.map(() => null),
      power: each.map(() => null),
      taken: each.map(() => false),
      free: each.map(() => false),
      stale: each.map(() => true),
    },
    next_pools: Object.fromEntries(nodes.map((id) => [`${id}/0`, "spare"])),
    next_cursor: null,
  };
}

test("indexes of later pages refer to the joined lists", () => {
  const whole = joined([
    page(["n1", "n2"], ["A10"], ["ann"], ["default"]),
    page(["n3", "n4"], ["H100", "A10"], ["bob", "ann"], ["vision"]),
  ]);
  expect(whole?.nodes.map((node) => node.id)).toEqual(["n1", "n2", "n3", "n4"]);
  expect(Object.keys(whole?.next_pools ?? {})).toEqual(["n1/0", "n2/0", "n3/0", "n4/0"]);
  expect(whole?.gpus.id).toEqual(["n1/0", "n2/0", "n3/0", "n4/0"]);
  expect(whole?.gpus.node).toEqual([0, 1, 2, 3]);
  expect(whole?.gpus.model.map((place) => whole.models[place])).toEqual(["A10", "A10", "H100", "A10"]);
  expect(whole?.gpus.pool.map((place) => whole.pools[place])).toEqual(["default", "default", "vision", "vision"]);
  expect(whole?.gpus.owner.map((place) => (place === null ? null : whole.owners[place]))).toEqual([
    "ann",
    null,
    "bob",
    "ann",
  ]);
});

test("a single page stays as it is", () => {
  const only = page(["n1"], ["A10"], [], ["default"]);
  expect(joined([only])).toBe(only);
});
