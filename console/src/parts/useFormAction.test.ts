import { describe, expect, it } from "vitest";

import { Problem } from "@/api/problem";
import { fieldErrors } from "@/parts/useFormAction";

function refusal(fields: readonly { field: string; detail: string }[], numbers: Record<string, unknown> = {}): Problem {
  return Object.assign(new Problem(422, "Refused", "it is refused"), { fields, numbers });
}

describe("the server's refusal of a form", () => {
  it("is shown beside the fields that it names", () => {
    const { beside, rest } = fieldErrors(refusal([{ field: "name", detail: "taken" }]), ["name", "pool"]);
    expect(beside).toEqual({ name: "taken" });
    expect(rest).toBeNull();
  });
  it("keeps every message about a field", () => {
    const twice = refusal([
      { field: "yaml", detail: "line 2: no title" },
      { field: "yaml", detail: "line 5: no type" },
    ]);
    expect(fieldErrors(twice, ["yaml"]).beside).toEqual({ yaml: "line 2: no title; line 5: no type" });
  });
  it("is shown at the top too if it concerns something that the form does not have", () => {
    const problem = refusal([
      { field: "name", detail: "taken" },
      { field: "request.gpus", detail: "too many" },
    ]);
    expect(fieldErrors(problem, ["name"])).toEqual({ beside: { name: "taken" }, rest: problem });
  });
  it("belongs to the one field that its numbers name", () =>
    expect(fieldErrors(refusal([], { field: "pool" }), ["pool"])).toEqual({
      beside: { pool: "it is refused" },
      rest: null,
    }));
  it("is shown at the top if it names no field", () => {
    const problem = refusal([]);
    expect(fieldErrors(problem, ["name"])).toEqual({ beside: {}, rest: problem });
  });
});
