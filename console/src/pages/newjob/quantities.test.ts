import { describe, expect, it } from "vitest";

import { arraySizeOf, bytesOf, durationText, gpusOf, secondsOf, sizeText } from "@/pages/newjob/quantities";

describe("durations", () => {
  it.each([
    ["90", 90],
    ["90m", 5_400],
    ["2H", 7_200],
    ["1d12h", 129_600],
    ["1.5h", 5_400],
    ["1w", 604_800],
  ])("%s", (text, seconds) => expect(secondsOf(text)).toBe(seconds));
  it.each(["", "soon", "2h30", "30m2h", "2h2h", "-1h", "20000d"])("%s is none", (text) =>
    expect(secondsOf(text)).toBeUndefined(),
  );
  it("reads back what it writes", () => expect(secondsOf(durationText(93_784))).toBe(93_784));
});

describe("sizes", () => {
  it.each([
    ["16GiB", 16 * 1024 ** 3],
    ["500M", 5e8],
    ["1.5 tib", 1.5 * 1024 ** 4],
    ["42", 42],
    ["2KB", 2_000],
  ])("%s", (text, bytes) => expect(bytesOf(text)).toBe(bytes));
  it.each(["", "lots", "5 ib", "GiB", "-1", "2EiB"])("%s is none", (text) => expect(bytesOf(text)).toBeUndefined());
  it("reads back what it writes", () => expect(bytesOf(sizeText(3 * 1024 ** 3 + 1))).toBe(3 * 1024 ** 3 + 1));
});

describe("GPUs", () => {
  it.each([
    ["0", 0],
    ["0.5", 0.5],
    [".125", 0.125],
    ["8", 8],
  ])("%s", (text, gpus) => expect(gpusOf(text)).toBe(gpus));
  it.each(["", "1.5", "0.0001", "-1", "1e3", "two"])("%s is none", (text) => expect(gpusOf(text)).toBeUndefined());
});

describe("arrays", () => {
  it.each([
    ["0-99", 100],
    ["0-99:5", 20],
    ["1,3,7", 3],
    ["4", 1],
    ["1 - 3", 3],
  ])("%s", (text, jobs) => expect(arraySizeOf(text)).toBe(jobs));
  it.each(["", "3-1", "1,1", "0-5:0", "0-2000", "a"])("%s is none", (text) =>
    expect(arraySizeOf(text)).toBeUndefined(),
  );
});
