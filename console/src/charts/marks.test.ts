import { describe, expect, it } from "vitest";

import { texts } from "@/charts/texts";
import { boundsOf } from "@/charts/ranges";
import { alertsOf, MOST_MARKS, marksOf } from "@/charts/useMarks";
import { say } from "@/texts/texts";

const t = say(texts, "en");
const alert = { fired_at: "2026-01-01T00:00:10Z", severity: "critical" as const, text: "GPU is hot" };
const start = { at: "2026-01-01T00:00:20Z", subject: "j-1" };

describe("marksOf", () => {
  it("names alerts and starts of jobs", () => {
    const marks = marksOf([alert], [start], t);
    expect(marks.map((mark) => mark.label)).toEqual(["Alert: GPU is hot", "j-1 started"]);
    expect((marks[1]?.at ?? 0) - (marks[0]?.at ?? 0)).toBe(10);
  });
  it("leaves out starts that are too many, and alerts that never fired", () => {
    const many = Array.from({ length: MOST_MARKS }, () => start);
    expect(marksOf([alert], many, t)).toHaveLength(1);
    expect(marksOf([{ ...alert, fired_at: null }], [], t)).toHaveLength(0);
  });
});

describe("alertsOf", () => {
  it("asks for the alerts of a certain range only, so that newer ones do not take their places", () => {
    const bounds = boundsOf([1_767_225_600, 1_767_229_200], Date.parse("2026-06-01T00:00:00Z"));
    expect(alertsOf(bounds, "n1")).toMatchObject({
      since: "2025-12-31T23:00:00.000Z",
      until: "2026-01-01T01:00:00.000Z",
      subject: "n1",
      state: ["firing", "resolved"],
    });
  });
});
