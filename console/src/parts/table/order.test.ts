import { describe, expect, it } from "vitest";

import type { Column } from "@/parts/DataTable";
import { hiddenOf, inOrder, sortingOf, sortOf, visible } from "@/parts/table/order";

interface Node {
  readonly name: string;
  readonly free: number | null;
}

const columns: readonly Column<Node>[] = [
  { key: "name", title: "Name", render: (node) => node.name, sort: (node) => node.name },
  { key: "free", title: "Free", render: (node) => node.free, sort: (node) => node.free },
  { key: "state", title: "State", render: () => "ready" },
];

describe("the order in the address", () => {
  it("is read and written alike", () => {
    expect(sortingOf("-free", columns)).toEqual({ key: "free", descending: true });
    expect(sortOf({ key: "free", descending: true }, { key: "name", descending: false })).toBe("-free");
  });
  it("is left out if it is the usual one", () => {
    expect(sortOf({ key: "name", descending: false }, { key: "name", descending: false })).toBe("");
  });
  it("means nothing to a table without that column, or that cannot sort by it", () => {
    expect(sortingOf("created", columns)).toBeUndefined();
    expect(sortingOf("state", columns)).toBeUndefined();
    expect(sortingOf("", columns)).toBeUndefined();
  });
  it("puts rows without a value last in both directions", () => {
    const rows = [
      { name: "a", free: null },
      { name: "b", free: 1 },
      { name: "c", free: 3 },
    ];
    const names = (descending: boolean) => inOrder(rows, columns, { key: "free", descending }).map((row) => row.name);
    expect(names(false)).toEqual(["b", "c", "a"]);
    expect(names(true)).toEqual(["c", "b", "a"]);
  });
});

describe("hidden columns", () => {
  it("never hide the first one", () => {
    expect(visible(columns, ["name", "state"]).map((column) => column.key)).toEqual(["name", "free"]);
  });
  it("keep the keys of other tables on the page", () => {
    expect(hiddenOf(columns, ["name", "state"], ["free", "created"])).toEqual(["created", "free"]);
    expect(hiddenOf(columns, ["name", "free", "state"], ["free", "created"])).toEqual(["created"]);
  });
});
