import { describe, expect, it } from "vitest";

import { isFull, part } from "@/parts/quotaUse";

describe("what counts against a quota", () => {
  it("counts waiting jobs beside running ones", () => {
    expect(part({ held: 2, asked: 4, limit: 8 })).toBe(0.75);
    expect(isFull({ held: 2, asked: 4, limit: 8 })).toBe(false);
    expect(isFull({ held: 2, asked: 6, limit: 8 })).toBe(true);
  });
  it("knows no part without a limit", () => {
    expect(part({ held: 2, asked: 4, limit: null })).toBeNull();
    expect(isFull({ held: 2, asked: 4, limit: null })).toBe(false);
  });
  it("is full over a limit of nothing", () => {
    expect(part({ held: 0, asked: 0, limit: 0 })).toBe(0);
    expect(part({ held: 0, asked: 1, limit: 0 })).toBe(1);
  });
});
