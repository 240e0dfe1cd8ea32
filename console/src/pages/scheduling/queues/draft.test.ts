import { describe, expect, it } from "vitest";

import { draftOf, holdingOf, settingsOf, weightOf } from "@/pages/scheduling/queues/draft";

describe("a queue's settings", () => {
  it("preempt only under a policy that ranks jobs", () => {
    const draft = { ...draftOf(undefined), preempts: true };
    expect(settingsOf(draft, true).preempts).toBe(true);
    expect(settingsOf(draft, false).preempts).toBe(false);
  });
  it("guarantee nothing and weigh one unless something is said", () => {
    expect(settingsOf(draftOf(undefined), false)).toMatchObject({ guaranteed_gpus: 0, weight: 1, preempts: false });
  });
  it.each(["0", "-1", "", "much", "1e999"])("take no weight of %j", (text) => expect(weightOf(text)).toBeUndefined());
});

describe("what a queue holds", () => {
  it("is its own as far as it is not borrowed", () => {
    const queue = { held_gpus: 10, borrowed_gpus: 2, owed_gpus: 0, guaranteed_gpus: 8 };
    expect(holdingOf(queue)).toEqual({ own: 8, borrowed: 2, owed: 0, whole: 10 });
  });
  it("leaves room in the bar for what it is guaranteed and no job asks for", () => {
    const queue = { held_gpus: 1, borrowed_gpus: 0, owed_gpus: 2, guaranteed_gpus: 8 };
    expect(holdingOf(queue)).toEqual({ own: 1, borrowed: 0, owed: 2, whole: 8 });
  });
});
