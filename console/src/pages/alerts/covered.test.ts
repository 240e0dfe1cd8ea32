import { describe, expect, it } from "vitest";

import { isCovered } from "@/pages/alerts/covered";

const alert = (rule: string, subject: string) => ({ rule, subject }) as Parameters<typeof isCovered>[0];
const silence = (rule: string, subject: string) => ({ rule, subject }) as Parameters<typeof isCovered>[1][number];

describe("a silence", () => {
  it.each([
    ["*", "*", true],
    ["gpu-*", "n1/?", true],
    ["gpu-hot", "n1/0", true],
    ["gpu-hot", "n2/*", false],
    ["gpu", "*", false],
    ["gpu.hot", "*", false],
    ["*", "n1/", false],
  ])("of rule %j and subject %j covers the alert: %j", (rule, subject, expected) =>
    expect(isCovered(alert("gpu-hot", "n1/0"), [silence(rule, subject)])).toBe(expected),
  );
  it("is one of several", () =>
    expect(isCovered(alert("gpu-hot", "n1/0"), [silence("x", "*"), silence("gpu-*", "*")])).toBe(true));
  it("is missing", () => expect(isCovered(alert("gpu-hot", "n1/0"), [])).toBe(false));
});
