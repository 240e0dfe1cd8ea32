import { describe, expect, it } from "vitest";

import { sparkPoints, topOf } from "@/charts/spark";

describe("sparkPoints", () => {
  it("draws a small change as a small one", () => {
    expect(sparkPoints([0.9, 0.91, 0.9], 1, 100, 24)).toEqual(["0.0,4.0", "50.0,3.8", "100.0,4.0"]);
  });

  it("draws the same value at the same height, whatever is beside it", () => {
    const [alone] = sparkPoints([0.5, 0.5], 1, 100, 24);
    const [beside] = sparkPoints([0.5, 0.01], 1, 100, 24);
    expect(alone).toBe(beside);
  });

  it("stays in its frame when everything is zero", () => {
    expect(sparkPoints([0, 0], 0, 10, 24)).toEqual(["0.0,22.0", "10.0,22.0"]);
  });
});

describe("topOf", () => {
  it("is the usual one, unless a value is beyond it", () => {
    expect(topOf([40, 60], 100)).toBe(100);
    expect(topOf([40, 104], 100)).toBe(104);
  });
});
