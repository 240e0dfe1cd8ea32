/**
 * The text and style of one log line as a terminal would show it: colours, bold and so on, and the final state of progress
 * bars that overwrite their line. Other control characters (titles, links, changes of text direction) are shown as symbols,
 * so that a log cannot hide anything.
 *
 * Written here because anser and ansi_up only handle colours: they neither apply carriage returns and cursor movements nor
 * make control and direction characters visible.
 *
 * Lines are parsed one at a time when they scroll into view, so the style of a line never continues from the line before.
 */

import { symbols } from "@/texts/symbols";

export interface Style {
  /** 0 … 15 of the palette, or a colour of CSS. */
  readonly fg?: number | string;
  readonly bg?: number | string;
  readonly bold?: boolean;
  readonly dim?: boolean;
  readonly italic?: boolean;
  readonly underline?: boolean;
  readonly strike?: boolean;
  readonly inverse?: boolean;
}

export interface Span {
  readonly text: string;
  readonly style: Style;
}

export const PLAIN: Style = {};

/** ESC [ … letter; ESC ] … (BEL or ESC \); ESC and one more character; and incomplete sequences at the end of a line. */
const SEQUENCE = /\x1b(?:\[([0-?]*)[ -/]*([@-~])|\[[0-?]*[ -/]*|\][^\x07\x1b]*(?:\x07|\x1b\\|$)|[ -/]*[0-~]|)/g;
/** Colours, and the cursor and screen sequences of programs with several progress bars. */
const SCREEN = /\x1b\[[0-?]*[ -/]*[@-~]/g;
const MOVES = /[\r\b]|\x1b\[[0-?]*[ -/]*[CDGK]/;
const SPECIAL = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/;

/** A line as spans of one style each. */
export function parseLine(line: string): Span[] {
  if (!SPECIAL.test(line)) return line === "" ? [] : [{ text: line, style: PLAIN }];
  const screen: Screen = MOVES.test(line) ? new Cells() : new Runs();
  let style = PLAIN;
  let at = 0;
  for (const found of line.matchAll(SEQUENCE)) {
    writeText(screen, line.slice(at, found.index), style);
    at = found.index + found[0].length;
    const [, parameters = "", final] = found;
    if (final === "m") style = restyled(style, parameters);
    else if (final !== undefined) screen.move(final, parameters);
    else writeText(screen, symbols(found[0]), style);
  }
  writeText(screen, line.slice(at), style);
  return screen.spans();
}

/** The text without styles, for searching and copying. */
export function plainText(text: string): string {
  if (!SPECIAL.test(text.replaceAll("\n", ""))) return text;
  return text
    .split("\n")
    .map((line) =>
      parseLine(line)
        .map((span) => span.text)
        .join(""),
    )
    .join("\n");
}

/** Removes escape sequences only; everything else stays as it is. Faster than `plainText`. */
export function withoutSequences(text: string): string {
  return text.includes("\x1b") ? text.replace(SCREEN, "") : text;
}

interface Screen {
  write(text: string, style: Style): void;
  back(): void;
  home(): void;
  move(final: string, parameters: string): void;
  spans(): Span[];
}

function writeText(screen: Screen, text: string, style: Style): void {
  for (const piece of symbols(text).split(/([\r\b])/)) {
    if (piece === "\r") screen.home();
    else if (piece === "\b") screen.back();
    else if (piece !== "") screen.write(piece, style);
  }
}

/** For lines that overwrite nothing: spans in the order in which they arrive. */
class Runs implements Screen {
  private readonly found: Span[] = [];

  write(text: string, style: Style): void {
    this.found.push({ text, style });
  }
  back(): void {}
  home(): void {}
  move(): void {}

  spans(): Span[] {
    return this.found;
  }
}

/** For lines that overwrite themselves: one cell for each character. */
class Cells implements Screen {
  private readonly cells: [letter: string, style: Style][] = [];
  private column = 0;

  write(text: string, style: Style): void {
    for (const letter of text) {
      while (this.cells.length < this.column) this.cells.push([" ", PLAIN]);
      this.cells[this.column] = [letter, style];
      this.column += 1;
    }
  }

  back(): void {
    this.column = Math.max(0, this.column - 1);
  }

  home(): void {
    this.column = 0;
  }

  move(final: string, parameters: string): void {
    const count = Math.min(Number.parseInt(parameters, 10) || 0, 1_000);
    if (final === "C") this.column += Math.max(1, count);
    else if (final === "D") this.column = Math.max(0, this.column - Math.max(1, count));
    else if (final === "G") this.column = Math.max(1, count) - 1;
    else if (final === "K") this.erase(count);
  }

  private erase(mode: number): void {
    const blank: [string, Style] = [" ", PLAIN];
    if (mode === 0) this.cells.length = Math.min(this.cells.length, this.column);
    else if (mode === 1) this.cells.fill(blank, 0, this.column + 1);
    else this.cells.length = 0;
  }

  spans(): Span[] {
    const spans: { text: string; style: Style }[] = [];
    for (const [letter, style] of this.cells) {
      const last = spans.at(-1);
      if (last?.style === style) last.text += letter;
      else spans.push({ text: letter, style });
    }
    return spans;
  }
}

function restyled(style: Style, parameters: string): Style {
  // 38:2::r:g:b is the same as 38;2;r;g;b with an empty colour space.
  const codes = parameters
    .replace(/([34]8):2::/g, "$1:2:")
    .split(/[;:]/)
    .map((code) => (code === "" ? 0 : Number.parseInt(code, 10)));
  let now = style;
  for (let at = 0; at < codes.length; at += 1) {
    const code = codes[at] ?? 0;
    if (code === 38 || code === 48) {
      const [color, used] = extended(codes.slice(at + 1));
      if (color !== undefined) now = code === 38 ? { ...now, fg: color } : { ...now, bg: color };
      at += used;
    } else now = switched(now, code);
  }
  return now;
}

function switched(style: Style, code: number): Style {
  if (code >= 30 && code <= 37) return { ...style, fg: code - 30 };
  if (code >= 40 && code <= 47) return { ...style, bg: code - 40 };
  if (code >= 90 && code <= 97) return { ...style, fg: code - 82 };
  if (code >= 100 && code <= 107) return { ...style, bg: code - 92 };
  const change = SWITCHES.get(code);
  return change === undefined ? style : code === 0 ? PLAIN : { ...style, ...change };
}

const SWITCHES: ReadonlyMap<number, Style> = new Map<number, Style>([
  [0, PLAIN],
  [1, { bold: true }],
  [2, { dim: true }],
  [3, { italic: true }],
  [4, { underline: true }],
  [7, { inverse: true }],
  [9, { strike: true }],
  [22, { bold: undefined, dim: undefined }],
  [23, { italic: undefined }],
  [24, { underline: undefined }],
  [27, { inverse: undefined }],
  [29, { strike: undefined }],
  [39, { fg: undefined }],
  [49, { bg: undefined }],
]);

/** `5;n` or `2;r;g;b`: the colour, and how many codes it took. */
function extended(codes: readonly number[]): [color: number | string | undefined, used: number] {
  const [mode, ...values] = codes;
  if (mode === 5 && values[0] !== undefined) return [ofPalette(values[0]), 2];
  const [red, green, blue] = values;
  if (mode === 2 && red !== undefined && green !== undefined && blue !== undefined)
    return [`rgb(${byte(red)} ${byte(green)} ${byte(blue)})`, 4];
  return [undefined, codes.length];
}

function ofPalette(index: number): number | string | undefined {
  if (index < 0 || index > 255) return undefined;
  if (index < 16) return index;
  if (index >= 232) {
    const grey = 8 + (index - 232) * 10;
    return `rgb(${grey} ${grey} ${grey})`;
  }
  const place = index - 16;
  const [red, green, blue] = [Math.floor(place / 36), Math.floor(place / 6) % 6, place % 6].map((level) =>
    level === 0 ? 0 : 55 + level * 40,
  );
  return `rgb(${red} ${green} ${blue})`;
}

function byte(value: number): number {
  return Math.max(0, Math.min(255, value));
}
