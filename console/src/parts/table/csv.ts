/** Tables as CSV (RFC 4180): the text that a cell shows, with exact times and plain numbers. */

/** Text that spreadsheets would run as a formula. */
const FORMULA = /^[=+\-@\t\r]/;
const NUMBER = /^[+-]?\d+(\.\d+)?(e[+-]?\d+)?$/i;

export function csvOf(lines: readonly (readonly string[])[]): string {
  return lines.map((line) => line.map(field).join(",") + "\r\n").join("");
}

function field(text: string): string {
  const safe = FORMULA.test(text) && !NUMBER.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** The parts of a node of the page that this module needs; browsers' own nodes have them. */
export interface ShownNode {
  readonly nodeType: number;
  readonly nodeName: string;
  readonly nodeValue: string | null;
  readonly childNodes: ArrayLike<ShownNode>;
  readonly getAttribute?: (name: string) => string | null;
}

const TEXT = 3;

/** Elements that stand within a line; the text of all others is apart from its neighbours. */
const INLINE = new Set(["span", "b", "strong", "em", "i", "a", "code", "mark", "small", "button"]);

/** The text of a cell: a time as RFC 3339, without decoration. */
export function textOf(node: ShownNode): string {
  return written(node).replace(/\s+/g, " ").trim();
}

function written(node: ShownNode): string {
  if (node.nodeType === TEXT) return node.nodeValue ?? "";
  const name = node.nodeName.toLowerCase();
  if (name === "svg" || name === "style" || node.getAttribute?.("aria-hidden") === "true") return "";
  if (name === "time") return node.getAttribute?.("datetime") ?? "";
  const inner = Array.from(node.childNodes).map(written).join("");
  return INLINE.has(name) ? inner : ` ${inner} `;
}
