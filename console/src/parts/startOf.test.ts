import { describe, expect, it } from "vitest";

import { startOf } from "@/parts/startOf";

const [SOON, LATER] = ["2026-01-01T00:00:21Z", "2026-01-01T00:03:00Z"];

describe("the start that every page shows", () => {
  it("is the likely one", () => {
    expect(startOf(LATER, { p50: SOON })).toEqual({ at: SOON, isBound: false });
    expect(startOf(null, { p50: SOON })).toEqual({ at: SOON, isBound: false });
  });
  it("is never later than the planned one", () => {
    expect(startOf(SOON, { p50: LATER })).toEqual({ at: SOON, isBound: true });
  });
  it("is the planned one without an estimate, and none without both", () => {
    expect(startOf(LATER, null)).toEqual({ at: LATER, isBound: true });
    expect(startOf(null, undefined)).toBeUndefined();
  });
});
