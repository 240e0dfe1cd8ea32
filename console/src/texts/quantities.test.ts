import { describe, expect, it } from "vitest";

import { durationText, parseDuration } from "@/texts/durations";
import { parseSize, sizeText } from "@/texts/sizes";

describe("durations", () => {
  it.each([
    ["90", 90],
    ["90m", 5_400],
    ["2H", 7_200],
    ["1d12h", 129_600],
    ["1.5h", 5_400],
    ["1w", 604_800],
    ["1:30:05", 5_405],
    ["2-12:00:00", 216_000],
  ])("%s", (text, seconds) => expect(parseDuration(text)).toBe(seconds));
  it.each(["", "soon", "2h30", "30m2h", "2h2h", "-1h", "20000d", "1:30", "1:60:00"])("%s is none", (text) =>
    expect(parseDuration(text)).toBeUndefined(),
  );
  it("reads back what it writes", () => expect(parseDuration(durationText(93_784))).toBe(93_784));
});

describe("sizes", () => {
  it.each([
    ["16GiB", 16 * 1024 ** 3],
    ["500M", 5e8],
    ["1.5 tib", 1.5 * 1024 ** 4],
    ["42", 42],
    ["2KB", 2_000],
  ])("%s", (text, bytes) => expect(parseSize(text)).toBe(bytes));
  it.each(["", "lots", "5 ib", "GiB", "-1", "2EiB"])("%s is none", (text) => expect(parseSize(text)).toBeUndefined());
  it("reads back what it writes", () => expect(parseSize(sizeText(3 * 1024 ** 3 + 1))).toBe(3 * 1024 ** 3 + 1));
});
