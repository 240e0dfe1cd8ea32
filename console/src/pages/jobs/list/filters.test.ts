import { describe, expect, it } from "vitest";

import { isSameFilters, NO_FILTERS, queryOf, searchOf, sinceOf } from "@/pages/jobs/list/filters";

const NOW = Date.parse("2026-03-04T05:06:07.890Z");

describe("filters of jobs", () => {
  it("leaves out what is not set", () => {
    const set = Object.values(queryOf(NO_FILTERS, NOW)).filter((value) => value !== undefined);
    expect(set).toEqual([]);
    expect(searchOf(NO_FILTERS)).toEqual({});
  });

  it("names times relative to now, the same for a minute", () => {
    expect(sinceOf("hour", NOW)).toBe("2026-03-04T04:06:00.000Z");
    expect(sinceOf("hour", NOW + 10_000)).toBe(sinceOf("hour", NOW));
    expect(Date.parse(sinceOf("today", NOW) ?? "")).toBeLessThanOrEqual(NOW);
    expect(sinceOf("2026-01-01", NOW)).toBe("2026-01-01T00:00:00.000Z");
    expect(sinceOf("nonsense", NOW)).toBeUndefined();
  });

  it("knows the same filters in another order", () => {
    expect(isSameFilters({ state: ["queued", "running"], q: "" }, { state: ["running", "queued"] })).toBe(true);
    expect(isSameFilters({ state: ["queued"], sort: "name" }, { state: ["queued"], sort: "-id" })).toBe(true);
    expect(isSameFilters({ state: ["queued"] }, { state: ["queued"], q: "x" })).toBe(false);
  });
});
