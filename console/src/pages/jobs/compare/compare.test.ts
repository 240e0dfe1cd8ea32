import { describe, expect, it } from "vitest";

import type { Job } from "@/pages/jobs/actions/possible";
import { fieldRows, idsOf, timesOf } from "@/pages/jobs/compare/compare";

function job(change: Partial<Job>): Job {
  const plain = {
    name: "train",
    kind: "training",
    preset: null,
    package: null,
    flavor: null,
    gpus: 2,
    nodes: 1,
    cpus: 0,
    memory_bytes: 0,
    models: [],
    labels: {},
    queue: "default",
    preemptible: true,
    env: {},
    mounts: [],
    after: [],
    command: ["python", "train.py"],
    created_at: "2026-01-01T00:00:00Z",
    queued_at: null,
    started_at: null,
    ended_at: null,
  };
  return { ...plain, ...change } as unknown as Job;
}

describe("idsOf", () => {
  it("keeps each once and at most five", () => {
    expect(idsOf(["j-1", "j-1", "", "j-2", "j-3", "j-4", "j-5", "j-6"])).toEqual(["j-1", "j-2", "j-3", "j-4", "j-5"]);
  });
});

describe("fieldRows", () => {
  it("finds differences inside of variables and commands", () => {
    const rows = fieldRows([
      job({ env: { LR: "0.1", SEED: "1" } }),
      job({ env: { LR: "0.2", SEED: "1" }, command: ["python", "train.py", "--deep"] }),
    ]);
    const differing = rows.filter((row) => row.differs);
    expect(differing.map((row) => row.field).sort()).toEqual(["command", "env.LR"]);
    expect(differing.find((row) => row.field === "env.LR")?.values).toEqual(["0.1", "0.2"]);
    expect(rows.find((row) => row.field === "env.SEED")?.differs).toBe(false);
  });
  it("shows a field that one of them lacks as empty", () => {
    const rows = fieldRows([job({ gpus: 0 }), job({ gpus: 1 })]);
    expect(rows.find((row) => row.field === "gpus")?.values).toEqual(["", "1"]);
  });
  it("shows no secret", () => {
    const rows = fieldRows([job({ env: { API_TOKEN: "a" } }), job({ env: { API_TOKEN: "b" } })]);
    expect(JSON.stringify(rows)).not.toContain('"a"');
  });
});

describe("timesOf", () => {
  it("counts to now for what goes on", () => {
    const running = job({ started_at: "2026-01-01T00:01:00Z" });
    expect(timesOf(running, Date.parse("2026-01-01T00:03:00Z"))).toEqual({ waited: 60, ran: 120 });
    expect(timesOf(job({}), Date.parse("2026-01-01T00:03:00Z"))).toEqual({ waited: 180, ran: null });
  });
});
