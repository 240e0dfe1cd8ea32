import { describe, expect, it } from "vitest";

import { pointsOf, seriesOf, sparkOf, type Series } from "@/charts/series";

function series(values: readonly (readonly [second: number, mean: number])[]): Series {
  const points = values.map(([second, mean]) => ({
    at: new Date(second * 1000).toISOString(),
    mean,
    least: mean,
    most: mean,
    count: 1,
  }));
  return { metric: "power", subject: "cluster", unit: "watts", points };
}

describe("pointsOf", () => {
  it("keeps neighbouring steps together", () => {
    expect(
      pointsOf(
        series([
          [0, 1],
          [15, 2],
          [45, 3],
        ]),
        15,
      ),
    ).toEqual([
      [0, 1],
      [15, 2],
      [45, 3],
    ]);
  });
  it("breaks the line where nothing was measured", () => {
    expect(
      pointsOf(
        series([
          [0, 1],
          [600, 2],
        ]),
        15,
      ),
    ).toEqual([
      [0, 1],
      [15, null],
      [600, 2],
    ]);
  });
  it("is empty without a series", () => {
    expect(pointsOf(undefined, 15)).toEqual([]);
  });
});

describe("sparkOf", () => {
  it("averages many points into a few", () => {
    const many = series(Array.from({ length: 100 }, (_, at) => [at, at]));
    expect(sparkOf(many, 4)).toEqual([12, 37, 62, 87]);
  });
});

describe("seriesOf", () => {
  it("finds by metric and subject", () => {
    const metrics = {
      since: "",
      until: "",
      step_seconds: 1,
      series: [
        { ...series([]), metric: "queue_length", subject: "a" },
        { ...series([]), metric: "queue_length", subject: "b" },
      ],
    };
    expect(seriesOf(metrics, "queue_length", "b")?.subject).toBe("b");
    expect(seriesOf(metrics, "power")).toBeUndefined();
  });
});
