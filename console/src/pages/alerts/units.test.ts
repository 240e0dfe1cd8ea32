import { describe, expect, it } from "vitest";

import { unitFor } from "@/pages/alerts/units";

describe("a unit", () => {
  it.each([
    [1, "GPUs", "GPU"],
    [2, "GPUs", "GPUs"],
    [1, "jobs", "job"],
    [1, "°C", "°C"],
    [1, "min", "min"],
  ])("after %j of %j is %j", (value, unit, expected) => expect(unitFor(value, unit)).toBe(expected));
});
