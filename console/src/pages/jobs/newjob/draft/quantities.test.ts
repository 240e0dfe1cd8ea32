import { describe, expect, it } from "vitest";

import { arraySizeOf, gpusOf } from "@/pages/jobs/newjob/draft/quantities";

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
