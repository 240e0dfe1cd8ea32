import { describe, expect, it } from "vitest";

import { problemOf } from "@/api/problem";

describe("a problem", () => {
  it("keeps the server's words, fields and numbers", () => {
    const answer = {
      type: "/problems/over-quota",
      title: "Over quota",
      status: 409,
      detail: "you hold 4 of 4",
      limit: 4,
      errors: [{ field: "gpus", message: "must be at most 4" }],
    };
    const problem = problemOf(answer);
    expect(problem).toMatchObject({
      status: 409,
      detail: "you hold 4 of 4",
      kind: "/problems/over-quota",
      numbers: { limit: 4 },
    });
    expect(problem.fields).toEqual([{ field: "gpus", detail: "must be at most 4" }]);
  });

  it("is an outage when no server answers, or only a proxy does", () => {
    expect(problemOf(new TypeError("Failed to fetch")).isOutage).toBe(true);
    expect(problemOf("<html>", 502).isOutage).toBe(true);
    expect(problemOf({ detail: "no", title: "", type: "", status: 500 }).isOutage).toBe(false);
  });
});
