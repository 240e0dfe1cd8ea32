import { describe, expect, it } from "vitest";

import { gpuHref } from "@/pages/fleet/gpus/gpuHref";
import { fitting, matching, refusalOf, type Gpu } from "@/pages/fleet/gpus/rules";

const usual: Gpu = {
  id: "a-gpu0",
  index: 0,
  cluster: "local",
  node: "a",
  model: "A10",
  memory_bytes: 1,
  health: "healthy",
  health_since: null,
  evidence: [],
  pool: "default",
  allocated: 0,
  taken: false,
  free: true,
  reserved: false,
  jobs: [],
  reading: null,
  next_pool: "",
  link_group: "",
};
const gpu = (change: Partial<Gpu>): Gpu => ({ ...usual, ...change });
const job = { id: "j-1", name: "llama", user: "ann", gpus: 1, state: "running" as const };
const seen = { sign: "hot" as const, at: "2026-01-01T00:00:00Z", text: "97 °C", advice: "" };

describe("refusalOf", () => {
  it("says why not", () => {
    expect(refusalOf("mark", usual)).toBeUndefined();
    expect(refusalOf("mark", gpu({ health: "failed" }))).toBe("isFailed");
    expect(refusalOf("reset", usual)).toBe("isHealthy");
    expect(refusalOf("reset", gpu({ health: "suspect" }))).toBeUndefined();
    expect(refusalOf("reset", gpu({ evidence: [seen] }))).toBeUndefined();
    expect(refusalOf("test", gpu({ jobs: [job] }))).toBe("hasJobs");
    expect(fitting("test", [usual, gpu({ jobs: [job] })])).toEqual([usual]);
  });
});

describe("matching", () => {
  const gpus = [
    usual,
    gpu({ id: "b-gpu0", node: "b", model: "H100", health: "suspect", allocated: 1, free: false, jobs: [job] }),
  ];
  const ids = (choice: Partial<Parameters<typeof matching>[1]>) =>
    matching(gpus, { q: "", health: [], model: "", pool: "", node: "", use: "", ...choice }).map((one) => one.id);
  it("narrows by each filter", () => {
    expect(ids({})).toEqual(["a-gpu0", "b-gpu0"]);
    expect(ids({ health: ["suspect", "failed"] })).toEqual(["b-gpu0"]);
    expect(ids({ use: "free" })).toEqual(["a-gpu0"]);
    expect(ids({ use: "used" })).toEqual(["b-gpu0"]);
    expect(ids({ node: "b", model: "H100" })).toEqual(["b-gpu0"]);
    expect(ids({ q: "ANN" })).toEqual(["b-gpu0"]);
  });
});

it("keeps the slashes of an id in the address", () => {
  expect(gpuHref("MIG-1/2/ü")).toBe("/gpus/MIG-1/2/%C3%BC");
});
