import { describe, expect, it } from "vitest";

import { parseSearch, safeNext, stringifySearch } from "@/app/addresses";

describe("where people go after signing in", () => {
  it.each([
    "/",
    "/jobs/j-1",
    "/jobs?state=running&state=queued",
    "/workbenches/j-1/jupyter/lab?x=1",
    "/gpus/node/GPU-0",
  ])("stays on this server: %s", (path) => {
    expect(safeNext(path)).toBe(path);
  });

  it.each([
    "//evil.example",
    "/\\evil.example",
    "/x\\y",
    "/\t/evil.example",
    "/\n/evil.example",
    "https://evil.example",
    "javascript:alert(1)",
    "evil",
    "/a b",
    "",
    "/signin?next=/signin",
    undefined,
    null,
    ["/jobs"],
  ])("is the first page for anything else: %j", (path) => {
    expect(safeNext(path)).toBe("/");
  });
});

describe("what stands in the address", () => {
  it("comes back as it was", () => {
    const search = { state: ["running", "queued"], user: "ann" };
    expect(parseSearch(stringifySearch(search))).toEqual(search);
  });
});
