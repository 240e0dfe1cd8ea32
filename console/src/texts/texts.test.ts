import { describe, expect, it } from "vitest";

import { fill, say, defineTexts } from "@/texts/texts";

describe("a text", () => {
  const texts = defineTexts({ waiting: ["{n} {n|job waits|jobs wait} for {user}", "{user} 的 {n} 个作业在等待"] });

  it("takes the form that fits the number", () => {
    expect(say(texts, "en")("waiting", { n: 1, user: "ann" })).toBe("1 job waits for ann");
    expect(say(texts, "en")("waiting", { n: 3, user: "ann" })).toBe("3 jobs wait for ann");
  });

  it("is shown in the other language", () =>
    expect(say(texts, "zh")("waiting", { n: 3, user: "ann" })).toBe("ann 的 3 个作业在等待"));
  it("keeps a place that has no value", () => expect(fill("{a} and {b}", { a: 1 })).toBe("1 and {b}"));
  it("takes values as they are", () => expect(fill("{a}", { a: "{b}", b: "no" })).toBe("{b}"));
});
