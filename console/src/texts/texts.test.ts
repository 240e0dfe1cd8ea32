import { describe, expect, it } from "vitest";

import { defineTexts, fill, say, sayOr } from "@/texts/texts";

describe("a text", () => {
  const texts = defineTexts({ waiting: ["{n} {n|job waits|jobs wait} for {user}", "{user} 的 {n} 个作业在等待"] });

  it("takes the form that fits the number", () => {
    expect(say(texts, "en")("waiting", { n: 1, user: "ann" })).toBe("1 job waits for ann");
    expect(say(texts, "en")("waiting", { n: 3, user: "ann" })).toBe("3 jobs wait for ann");
  });

  it("is shown in the other language", () =>
    expect(say(texts, "zh")("waiting", { n: 3, user: "ann" })).toBe("ann 的 3 个作业在等待"));
  it("keeps a place that has no value", () => expect(fill("{a} and {b}", { a: 1 })).toBe("1 and {b}"));
  it("of a value that is unknown here is the one that the server gives", () => {
    const policies = defineTexts({ priority: ["Priority", "优先级"] });
    expect(sayOr(policies, "zh")("priority", "smaller numbers first")).toBe("优先级");
    expect(sayOr(policies, "zh")("lottery", "a random job first")).toBe("a random job first");
    expect(sayOr(policies, "en")("lottery")).toBe("lottery");
    expect(sayOr(policies, "en")("constructor")).toBe("constructor");
  });
  it("takes values as they are", () => expect(fill("{a}", { a: "{b}", b: "no" })).toBe("{b}"));
});
