import { expect, test } from "vitest";

import type { GpuMap } from "@/api/gpuMap";
import { gpusOf, moveRefusal, partsOf, withMoved } from "@/pages/fleet/pools/fleet";

/** A free and a held A10 in `default`, a held A10 that leaves `vision`, and a free L4 in `default`. */
const map: GpuMap = {
  at: "2026-01-01T00:00:00Z",
  nodes: [{ id: "n1", state: "ready", cluster: "local" }],
  models: ["A10", "L4"],
  owners: ["ann"],
  pools: ["default", "vision"],
  gpus: {
    id: ["free", "held", "leaving", "l4"],
    node: [0, 0, 0, 0],
    index: [0, 1, 2, 3],
    model: [0, 0, 0, 1],
    pool: [0, 0, 1, 0],
    health: ["healthy", "healthy", "healthy", "healthy"],
    allocated: [0, 1, 0.5, 0],
    owner: [null, 0, 0, null],
    job: [null, "j-1", "j-2", null],
    utilization: [null, null, null, null],
    memory: [null, null, null, null],
    temperature: [null, null, null, null],
    power: [null, null, null, null],
    taken: [false, false, false, false],
    free: [true, false, false, true],
    stale: [false, false, false, false],
  },
  next_pools: { leaving: "default" },
  next_cursor: null,
};
const gpus = gpusOf(map);
const only = (...ids: string[]) => gpus.filter((gpu) => ids.includes(gpu.id));
const idsOf = (found: readonly { id: string }[]) => found.map((gpu) => gpu.id);

test("a free GPU moves now, a held one later, and one that was to leave stays", () => {
  const parts = partsOf(only("free", "held", "leaving"), "vision");
  expect(idsOf(parts.now)).toEqual(["free"]);
  expect(idsOf(parts.later)).toEqual(["held"]);
  expect(idsOf(parts.staying)).toEqual(["leaving"]);
});

test("the map shows a planned move at once, and a move into the own pool ends it", () => {
  const planned = gpusOf(withMoved(map, new Set(["free", "held", "leaving"]), "vision"));
  expect(planned.map((gpu) => [gpu.id, gpu.pool, gpu.nextPool])).toEqual([
    ["free", "vision", undefined],
    ["held", "default", "vision"],
    ["leaving", "vision", undefined],
    ["l4", "default", undefined],
  ]);
});

test("a move is refused that changes nothing, or mixes models with GPUs that are to come", () => {
  const say = (key: string) => key;
  expect(moveRefusal(say as never, gpus, only("free"), "default")).toBe("sameHere");
  expect(moveRefusal(say as never, gpus, only("leaving"), "default")).toBe("sameHere");
  expect(moveRefusal(say as never, gpus, only("leaving"), "vision")).toBeUndefined();
  expect(moveRefusal(say as never, gpus, only("l4"), "vision")).toBe("oneModel");
  expect(moveRefusal(say as never, gpus, only("held"), "vision")).toBeUndefined();
});
