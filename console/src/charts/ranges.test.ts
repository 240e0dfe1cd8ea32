import { describe, expect, it } from "vitest";

import { boundsOf, certain, parseRange, secondsOf, writeRange } from "@/charts/ranges";

const FROM = Date.parse("2026-03-04T05:00:00Z") / 1000;

describe("the time range in the address", () => {
  it("is read as it was written", () => {
    const written = writeRange([FROM, FROM + 600]);
    expect(written).toBe("2026-03-04T05:00:00Z..2026-03-04T05:10:00Z");
    expect(parseRange(written)).toEqual([FROM, FROM + 600]);
    expect(parseRange("24h")).toBe("24h");
  });
  it("is none if it is no time, or ends before it begins", () => {
    expect(parseRange("yesterday")).toBeUndefined();
    expect(parseRange("2026-03-04T05:00:00Z")).toBeUndefined();
    expect(parseRange("2026-03-04T05:00:00Z..2026-03-04T04:00:00Z")).toBeUndefined();
    expect(parseRange(["1h"])).toBeUndefined();
  });
  it("is not shorter than readings are apart", () => {
    expect(secondsOf(certain(FROM, FROM + 2))).toBeGreaterThanOrEqual(30);
    expect(certain(FROM + 0.4, FROM + 99.6)).toEqual([FROM, FROM + 100]);
  });
  it("ends now for a preset only", () => {
    const now = FROM * 1000;
    expect(boundsOf("1h", now)).toEqual({ since: "2026-03-04T04:00:00.000Z" });
    expect(boundsOf([FROM, FROM + 60], now)).toEqual({
      since: "2026-03-04T05:00:00.000Z",
      until: "2026-03-04T05:01:00.000Z",
    });
  });
});
