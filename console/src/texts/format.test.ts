import { describe, expect, it } from "vitest";

import { formatIn } from "@/texts/format";

const english = formatIn("en");
const chinese = formatIn("zh");

describe("sizes and times", () => {
  it.each([
    [0, "0 B"],
    [1536, "1.5 KiB"],
    [80 * 1024 ** 3, "80 GiB"],
    [1023.6 * 1024 ** 2, "1024 MiB"],
  ])("%d bytes are %s", (value, text) => expect(english.bytes(value)).toBe(text));

  it.each([
    [0, "0s"],
    [0.4, "< 1s"],
    [61, "1m 1s"],
    [3600, "1h"],
    [90_061, "1d 1h"],
    [86_400 * 3 + 59, "3d"],
  ])("%d seconds are %s", (value, text) => expect(english.duration(value)).toBe(text));

  it("are written in Chinese", () => expect(chinese.duration(3_660)).toBe("1 小时 1 分"));
  it("have a dash where nothing was measured", () =>
    expect([english.bytes(null), english.percent(undefined), english.watts(null)]).toEqual(["–", "–", "–"]));
  it("say how long ago", () => expect(english.ago(0, 120_000)).toBe("2 min ago"));
});
