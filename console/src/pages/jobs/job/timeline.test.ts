import { describe, expect, it } from "vitest";

import type { Job } from "@/pages/jobs/actions/possible";
import { rowsOf, spanOf, type Attempt } from "@/pages/jobs/job/timeline";

const at = (second: number) => new Date(Date.UTC(2026, 0, 1) + second * 1000).toISOString();
const ms = (second: number) => Date.UTC(2026, 0, 1) + second * 1000;

function job(state: Job["state"], queued: number): Job {
  return { state, created_at: at(0), queued_at: at(queued) } as Partial<Job> as Job;
}

function attempt(number: number, planned: number, started: number | null, ended: number | null): Attempt {
  return {
    number,
    planned_at: at(planned),
    started_at: started === null ? null : at(started),
    ended_at: ended === null ? null : at(ended),
  } as Partial<Attempt> as Attempt;
}

describe("the timeline of attempts", () => {
  it("has what was waited for, the launch and the run", () => {
    const [row] = rowsOf(job("running", 0), [attempt(1, 10, 12, null)], ms(60));
    expect(row?.bars.map((bar) => [bar.phase, bar.to - bar.from, bar.isOpen])).toEqual([
      ["wait", 10_000, false],
      ["launch", 2_000, false],
      ["run", 48_000, true],
    ]);
  });

  it("has a wait between attempts, and one that goes on", () => {
    const rows = rowsOf(job("queued", 30), [attempt(1, 0, 1, 20)], ms(50));
    expect(rows).toHaveLength(2);
    expect(rows[1]?.bars).toEqual([{ phase: "wait", from: ms(30), to: ms(50), isOpen: true }]);
    expect(spanOf(rows)).toEqual([ms(0), ms(50)]);
  });

  it("knows an attempt that never came up", () => {
    const [row] = rowsOf(job("failed", 0), [attempt(1, 5, null, 9)], ms(50));
    expect(row?.bars.map((bar) => bar.phase)).toEqual(["wait", "launch"]);
  });
});
