import { describe, expect, it } from "vitest";

import { changesOf, isEmpty, NO_CHANGES, NO_NODES, NO_QUEUE, shadowChangesOf, wrongOf } from "@/pages/whatif/changes";

describe("changes", () => {
  it("are none while nothing is said", () => {
    expect(changesOf(NO_CHANGES)).toEqual({});
    expect(isEmpty(changesOf(NO_CHANGES))).toBe(true);
  });
  it("hold only what was said, nothing empty", () => {
    const draft = {
      ...NO_CHANGES,
      queues: [
        { ...NO_QUEUE, policy: "shortest" },
        { ...NO_QUEUE, queue: "night", preempts: "no" as const, guaranteed_gpus: "8" },
        { ...NO_QUEUE, queue: "day" },
      ],
      preemption: "yes" as const,
      min_run: "10m",
      quotas: [
        { user: "ann", gpus: "16" },
        { user: "", gpus: "4" },
      ],
      scale: "1.5",
      add: [{ ...NO_NODES, model: "H100" }],
    };
    expect(changesOf(draft)).toEqual({
      queues: { "*": { policy: "shortest" }, night: { preempts: false, guaranteed_gpus: 8 } },
      preemption: { enabled: true, min_run_seconds: 600 },
      quotas: { ann: 16 },
      fleet: { scale: 1.5, add: [{ nodes: 1, gpus: 8, model: "H100", pool: "default" }] },
    });
  });
  it("of a shadow leave the fleet and the people alone", () => {
    const draft = { ...NO_CHANGES, scale: "2", protected_starts: "3", quotas: [{ user: "ann", gpus: "1" }] };
    expect(shadowChangesOf(draft)).toEqual({ protected_starts: 3 });
  });
  it("can be each policy in turn, beside other changes", () => {
    const draft = { ...NO_CHANGES, scale: "2", all_policies: true };
    expect(changesOf(draft)).toEqual({ fleet: { scale: 2 }, all_policies: true });
    expect(shadowChangesOf(draft)).toEqual({});
  });
  it("keep a zero, which means no limit", () => {
    expect(changesOf({ ...NO_CHANGES, max_gpus_per_user: "0" })).toEqual({ limits: { max_gpus_per_user: 0 } });
  });
});

describe("what is wrong", () => {
  it("is reported for its field", () => {
    const queues = [{ ...NO_QUEUE, weight: "0", guaranteed_gpus: "-1" }];
    const add = [{ ...NO_NODES, nodes: "" }];
    expect(wrongOf({ ...NO_CHANGES, queues, add, min_run: "soon", scale: "many" })).toEqual({
      "queues.0.weight": "above",
      "queues.0.guaranteed_gpus": "count",
      "add.0.nodes": "above",
      min_run: "time",
      scale: "above",
    });
  });
  it("is nothing while nothing is said", () => expect(wrongOf(NO_CHANGES)).toEqual({}));
});
