import { describe, expect, it } from "vitest";

import { ownerColors, roundUp, scaleOf, shade } from "@/pages/fleet/overview/map/colors";
import { chosen, gpusOf, heldByOwner, runsOf, type Gpu, type MapData } from "@/pages/fleet/overview/map/gpus";
import { changedPlaces, legendOf, lookOf } from "@/pages/fleet/overview/map/looks";

const usual: Gpu = {
  id: "a-gpu0",
  node: "a",
  nodeState: "ready",
  index: 0,
  model: "A10",
  pool: "default",
  health: "healthy",
  allocated: 1,
  owner: "ann",
  job: "j-1",
  utilization: 0.5,
  memory: 0.25,
  power: 120,
  temperature: 60,
  taken: false,
  free: false,
  stale: false,
};
const gpu = (change: Partial<Gpu>): Gpu => ({ ...usual, ...change });
const look = (change: Partial<Gpu>, coloring: Parameters<typeof lookOf>[1] = "utilization") => {
  const one = gpu(change);
  return lookOf(one, coloring, legendOf(coloring, [one], true), "#444444");
};

describe("gpusOf", () => {
  it("reads the columns", () => {
    const data: MapData = {
      at: "",
      nodes: [{ id: "a", state: "cordoned", cluster: "local" }],
      models: ["A10"],
      pools: ["default"],
      owners: ["ann"],
      next_cursor: null,
      next_pools: {},
      gpus: {
        id: ["a-gpu0", "a-gpu1"],
        node: [0, 0],
        index: [0, 1],
        model: [0, 0],
        pool: [0, 0],
        health: ["healthy", "failed"],
        allocated: [0.5, 0],
        owner: [0, null],
        job: ["j-1", null],
        utilization: [0.1, null],
        memory: [0.2, null],
        power: [50, null],
        temperature: [40, null],
        taken: [false, true],
        free: [false, false],
        stale: [false, true],
      },
    };
    const [first, second] = gpusOf(data);
    expect(first).toMatchObject({
      id: "a-gpu0",
      node: "a",
      nodeState: "cordoned",
      owner: "ann",
      job: "j-1",
      allocated: 0.5,
      utilization: 0.1,
    });
    expect(second).toMatchObject({ health: "failed", owner: null, utilization: null, stale: true });
  });
});

describe("chosen", () => {
  const gpus = [gpu({}), gpu({ id: "b-gpu0", node: "b", model: "H100", owner: "ben", job: null, pool: "big" })];
  it("narrows by model, pool and text", () => {
    const ids = (choice: Partial<Parameters<typeof chosen>[1]>) =>
      chosen(gpus, { model: "", pool: "", q: "", ...choice }).map((one) => one.id);
    expect(ids({})).toEqual(["a-gpu0", "b-gpu0"]);
    expect(ids({ model: "H100" })).toEqual(["b-gpu0"]);
    expect(ids({ pool: "default" })).toEqual(["a-gpu0"]);
    expect(ids({ q: " BEN " })).toEqual(["b-gpu0"]);
    expect(ids({ q: "j-1" })).toEqual(["a-gpu0"]);
    expect(ids({ q: "unknown" })).toEqual([]);
  });
});

it("counts GPUs by node and by owner", () => {
  const gpus = [
    gpu({}),
    gpu({ id: "a-gpu1", allocated: 0.5, owner: "ben" }),
    gpu({ id: "b-gpu0", node: "b", allocated: 0, owner: null }),
  ];
  expect(runsOf(gpus).map((run) => [run.node, run.count])).toEqual([
    ["a", 2],
    ["b", 1],
  ]);
  expect(heldByOwner(gpus)).toEqual([
    ["ann", 1],
    ["ben", 0.5],
  ]);
});

describe("lookOf", () => {
  it("distinguishes failed, suspect, stale and free by shape", () => {
    expect(look({ health: "failed" }).mark).toBe("cross");
    expect(look({ health: "suspect" }).mark).toBe("hatch");
    expect(look({ taken: true, allocated: 0, stale: true })).toMatchObject({ mark: "none", fill: "#444444" });
    expect(look({ stale: true })).toMatchObject({ mark: "dashes", fill: null });
    expect(look({ nodeState: "down" }).mark).toBe("dashes");
    expect(look({ allocated: 0 })).toMatchObject({ fill: null, edge: "#444444", mark: "none" });
    expect(look({ nodeState: "cordoned" }).faded).toBe(true);
  });
  it("fills what is held by what is measured", () => {
    expect(look({ utilization: 0 }).fill).not.toBe(look({ utilization: 1 }).fill);
    expect(look({ utilization: null })).toMatchObject({ fill: null, edge: "#444444" });
    expect(look({ allocated: 0 }, "temperature").edge).not.toBe("#444444");
  });
});

describe("changedPlaces", () => {
  it("redraws only what looks different", () => {
    const before = [look({ utilization: 0.1 }), look({ utilization: 0.5 }), look({})];
    const after = [look({ utilization: 0.1 }), look({ utilization: 0.9 }), look({ health: "failed" })];
    expect(changedPlaces(before, after)).toEqual([1, 2]);
    expect(changedPlaces([], after)).toEqual([0, 1, 2]);
  });
  it("does not follow every flicker", () => {
    expect(changedPlaces([look({ utilization: 0.5 })], [look({ utilization: 0.501 })])).toEqual([]);
  });
});

describe("colours", () => {
  it("begin and end with the scale's own", () => {
    const scale = scaleOf("utilization", [], true);
    expect(scale && [shade(scale, -1), shade(scale, 2)]).toEqual([scale?.stops[0], scale?.stops.at(-1)]);
  });
  it("end power at a round figure", () => {
    expect([0, 68, 120, 310, 700, 1000].map(roundUp)).toEqual([1, 75, 150, 400, 750, 1000]);
  });
  it("give users different colours that stay", () => {
    const some = ownerColors(["ann", "ben", "chen", "dana"]);
    expect(new Set(some.values()).size).toBe(4);
    expect(ownerColors(["dana", "ann", "chen", "ben"])).toEqual(some);
    expect(new Set(ownerColors(Array.from({ length: 20 }, (_, at) => `user-${at}`)).values()).size).toBe(20);
  });
});
