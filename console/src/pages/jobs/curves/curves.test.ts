import { describe, expect, it } from "vitest";

import { boundsOf, linesOf, namesOf, shown, smoothed, type Curve } from "@/pages/jobs/curves/curves";

function curve(name: string, values: readonly (number | null)[]): Curve {
  const points = values.map((value, step) => ({ step, at: "2026-01-01T00:00:00Z", value }));
  return { name, source: "curves.jsonl", count: points.length, points };
}

const jobs = [
  { job: "j-1", curves: [curve("loss", [4, 2]), curve("accuracy", [0.5, 0.75])] },
  { job: "j-2", curves: [curve("loss", [5, 3])] },
];

describe("curves of several jobs", () => {
  it("shows first what they have in common", () => {
    expect(namesOf(jobs)).toEqual(["loss", "accuracy"]);
  });
  it("gives a job the same colour in every chart", () => {
    const [first, second] = linesOf(jobs, "loss", "none");
    expect([first?.label, second?.label]).toEqual(["j-1", "j-2"]);
    expect(linesOf(jobs, "accuracy", "none")[0]?.color).toBe(first?.color);
    expect(first?.color).not.toBe(second?.color);
  });
});

describe("smoothed", () => {
  it("begins at the first value and leaves gaps", () => {
    const points = smoothed(
      [
        [0, 8],
        [1, null],
        [2, 4],
      ],
      0.5,
    );
    expect(points[0]).toEqual([0, 8]);
    expect(points[1]).toEqual([1, null]);
    expect(points[2]?.[1]).toBeCloseTo(16 / 3);
  });
  it("changes nothing without weight", () => {
    expect(smoothed([[0, 1]], 0)).toEqual([[0, 1]]);
  });
});

describe("boundsOf", () => {
  it("stands around the values", () => {
    expect(boundsOf(linesOf(jobs, "loss", "none"))).toEqual([1.85, 5.15]);
  });
  it("has none without values", () => {
    expect(boundsOf([])).toBeUndefined();
  });
});

describe("shown", () => {
  it("keeps the digits that matter", () => {
    expect([0, 0.12345, 12.3456, 0.00001234, 1_234_567].map(shown)).toEqual([
      "0",
      "0.1235",
      "12.35",
      "1.23e-5",
      "1.23e+6",
    ]);
  });
});
