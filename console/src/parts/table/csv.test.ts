import { describe, expect, it } from "vitest";

import { csvOf, textOf, type ShownNode } from "@/parts/table/csv";

function text(value: string): ShownNode {
  return { nodeType: 3, nodeName: "#text", nodeValue: value, childNodes: [] };
}

function element(name: string, children: readonly ShownNode[], attributes: Record<string, string> = {}): ShownNode {
  return {
    nodeType: 1,
    nodeName: name.toUpperCase(),
    nodeValue: null,
    childNodes: children,
    getAttribute: (key) => attributes[key] ?? null,
  };
}

describe("csvOf", () => {
  it("quotes what a reader would split", () => {
    expect(csvOf([["a,b", 'say "yes"', "two\nlines", "plain"]])).toBe('"a,b","say ""yes""","two\nlines",plain\r\n');
  });
  it("lets no spreadsheet run a name as a formula, and leaves numbers alone", () => {
    expect(csvOf([["=1+1", "@sum", "-5", "+2.5e3", "-x"]])).toBe("'=1+1,'@sum,-5,+2.5e3,'-x\r\n");
  });
});

describe("textOf", () => {
  it("joins texts of one line and separates blocks", () => {
    const cell = element("div", [
      element("a", [element("span", [text("train"), text("-7")])]),
      element("div", [text("j-12 · "), text("ann")]),
    ]);
    expect(textOf(cell)).toBe("train-7 j-12 · ann");
  });
  it("writes a time exactly, and no decoration", () => {
    const cell = element("div", [
      element("svg", [text("icon")]),
      element("time", [text("3 min ago")], { datetime: "2026-01-02T03:04:05Z" }),
      element("span", [text("·")], { "aria-hidden": "true" }),
    ]);
    expect(textOf(cell)).toBe("2026-01-02T03:04:05Z");
  });
});
