import { describe, expect, it } from "vitest";

import { microText, parseMicro } from "@/parts/micro";

describe("amounts of budgets", () => {
  it.each([
    ["100", 100_000_000],
    ["12.50", 12_500_000],
    ["0.000001", 1],
    ["-2.5", -2_500_000],
    [" 3 ", 3_000_000],
  ])("%s is read exactly", (text, micro) => {
    expect(parseMicro(text)).toBe(micro);
  });

  it.each(["", "ten", "1.0000001", "1e9", "1,5", "NaN", "9999999999"])("%s is no amount", (text) => {
    expect(parseMicro(text)).toBeUndefined();
  });

  it.each([0, 1, -1, 12_500_000, 999_999_999_999_999, -2_000_000])(
    "%d is written so that it is read again",
    (micro) => {
      expect(parseMicro(microText(micro))).toBe(micro);
    },
  );
});
