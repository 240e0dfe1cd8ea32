import { describe, expect, it } from "vitest";

import { outcomeOf, pointOf } from "@/pages/reports/analysis/pastStarts";

const at = (minutes: number) => new Date(Date.UTC(2026, 0, 3, 10, minutes)).toISOString();
const past = (started: number) => ({ job: "j-1", made_at: at(0), p50: at(10), p90: at(20), started_at: at(started) });

describe("an estimate that has come to its end", () => {
  it.each([
    [5, "early"],
    [10, "early"],
    [15, "between"],
    [20, "between"],
    [21, "late"],
  ] as const)("was kept or not when it started after %i minutes", (started, outcome) =>
    expect(outcomeOf(past(started))).toBe(outcome),
  );
  it("is a point of what was said and what came", () => {
    expect(pointOf(past(15))).toEqual([600, 900]);
    expect(pointOf({ ...past(15), started_at: at(-1) })).toEqual([600, 0]);
  });
});
