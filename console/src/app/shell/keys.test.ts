import { describe, expect, it } from "vitest";

import { BINDINGS, bindingsFor, NOTHING, press } from "@/app/shell/keys";

function pressed(keys: readonly (readonly [key: string, at: number])[], isOperator = true) {
  let state = NOTHING;
  let path: string | undefined;
  for (const [key, at] of keys) ({ pressed: state, path } = press(state, key, at, bindingsFor(isOperator)));
  return path;
}

describe("press", () => {
  it("opens a page after its last key", () => {
    expect(pressed([["n", 10]])).toBe("/jobs/new");
    expect(
      pressed([
        ["g", 10],
        ["q", 500],
      ]),
    ).toBe("/queue");
  });
  it("begins anew after a pause, and after a key that fits nothing", () => {
    expect(
      pressed([
        ["g", 10],
        ["q", 5_000],
      ]),
    ).toBeUndefined();
    expect(
      pressed([
        ["g", 10],
        ["x", 20],
        ["n", 30],
      ]),
    ).toBe("/jobs/new");
  });
  it("leaves pages of operators to operators", () => {
    const nodes = [
      ["g", 10],
      ["n", 20],
    ] as const;
    expect(pressed(nodes)).toBe("/nodes");
    // For others the second key is a binding of its own.
    expect(pressed(nodes, false)).toBe("/jobs/new");
  });
});

describe("bindings", () => {
  it("are all pages, and different", () => {
    expect(bindingsFor(true)).toHaveLength(BINDINGS.length);
    expect(new Set(BINDINGS.map((one) => one.keys.join(" "))).size).toBe(BINDINGS.length);
  });
});
