import { expect, it } from "vitest";

import { runEach } from "@/api/each";
import { Problem } from "@/api/problem";

it("continues after a refusal, and reports both", async () => {
  const seen: number[] = [];
  const outcome = await runEach(
    ["a", "b", "c"],
    async (name) => {
      if (name === "b") throw new Problem(409, "In use", "b is in use");
    },
    (ended) => seen.push(ended),
    1,
  );
  expect(outcome.done).toEqual(["a", "c"]);
  expect(outcome.refused.map((one) => [one.name, one.problem.detail])).toEqual([["b", "b is in use"]]);
  expect(seen).toEqual([1, 2, 3]);
});

it("runs no more at once than it may", async () => {
  let running = 0;
  let most = 0;
  await runEach(
    Array.from({ length: 20 }, (_, at) => String(at)),
    async () => {
      running += 1;
      most = Math.max(most, running);
      await new Promise((resolve) => setTimeout(resolve, 1));
      running -= 1;
    },
  );
  expect(most).toBe(4);
});
