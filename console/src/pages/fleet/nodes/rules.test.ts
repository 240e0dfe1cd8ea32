import { describe, expect, it } from "vitest";

import { fitting, matching, refusalOf, type Node } from "@/pages/fleet/nodes/rules";

const usual: Node = {
  id: "dgx-01",
  cluster: "local",
  state: "ready",
  withheld: "ready",
  drain: null,
  reason: "",
  cpus: 64,
  memory_bytes: 1,
  labels: { zone: "fra1" },
  load: 0,
  gpus_total: 0,
  gpus_free: 0,
  gpus_reserved: 0,
  gpus_allocated: 0,
  taken: { gpus: 0, cpus: 0, memory_bytes: 0 },
  gpus: [],
  host: null,
  jobs: [],
};
const node = (change: Partial<Node>): Node => ({ ...usual, ...change });
const job = { id: "j-1", name: "llama", user: "ann", gpus: 1, state: "running" as const };

describe("refusalOf", () => {
  it("allows only what changes something", () => {
    expect(refusalOf("cordon", usual)).toBeUndefined();
    expect(refusalOf("cordon", node({ withheld: "cordoned" }))).toBe("isCordoned");
    expect(refusalOf("drain", node({ withheld: "cordoned" }))).toBeUndefined();
    expect(refusalOf("uncordon", usual)).toBe("isReady");
    expect(refusalOf("uncordon", node({ state: "cordoned", reason: "disk" }))).toBeUndefined();
  });
  it("lets only what is gone be removed", () => {
    expect(refusalOf("remove", usual)).toBe("isThere");
    expect(refusalOf("remove", node({ state: "down" }))).toBeUndefined();
    expect(refusalOf("remove", node({ state: "down", jobs: [job] }))).toBe("hasJobs");
  });
  it("picks those that fit out of many", () => {
    expect(fitting("cordon", [usual, node({ id: "b", withheld: "cordoned" })]).map((one) => one.id)).toEqual([
      "dgx-01",
    ]);
  });
});

describe("matching", () => {
  const nodes = [usual, node({ id: "dgx-02", state: "down", labels: {}, jobs: [job] })];
  const ids = (choice: Partial<Parameters<typeof matching>[1]>) =>
    matching(nodes, { q: "", state: "", model: "", ...choice }).map((one) => one.id);
  it("narrows by state, label and user", () => {
    expect(ids({})).toEqual(["dgx-01", "dgx-02"]);
    expect(ids({ state: "down" })).toEqual(["dgx-02"]);
    expect(ids({ q: "zone=fra" })).toEqual(["dgx-01"]);
    expect(ids({ q: "ann" })).toEqual(["dgx-02"]);
    expect(ids({ model: "H100" })).toEqual([]);
  });
});
