import { describe, expect, it } from "vitest";

import { marksOf } from "@/pages/jobs/why/estimate";

const NOW = Date.parse("2026-01-03T10:00:00Z");
const at = (minutes: number) => new Date(NOW + minutes * 60_000).toISOString();

describe("an estimate on its line", () => {
  it("stands where its times lie between now and a little after the later one", () => {
    const marks = marksOf({ p50: at(30), p90: at(60) }, NOW);
    expect(marks.p50).toBeCloseTo(50 / 1.15);
    expect(marks.p90).toBeCloseTo(100 / 1.15);
  });
  it("is at the beginning once its time has come", () => {
    expect(marksOf({ p50: at(-10), p90: at(-5) }, NOW)).toMatchObject({ p50: 0, p90: 0, length: 60_000 });
  });
  it("never has its later mark before the earlier one", () => {
    const marks = marksOf({ p50: at(20), p90: at(10) }, NOW);
    expect(marks.p90).toBe(marks.p50);
  });
});
