/**
 * A log in memory: a million lines and more. Text is kept in large pieces with the places of their lines, never as an
 * object for each line; the view asks for the few lines in sight. Listeners are notified of changes once per frame.
 */
import { withoutSequences } from "@/pages/jobs/logs/ansi";

interface Piece {
  text: string;
  /** Where each of its lines begins. */
  readonly starts: number[];
  /** The number of its first line, counted from 0 in the whole log. */
  readonly first: number;
}

export interface Found {
  /** Lines that have it, counted from 0; at most `MOST_FOUND`. */
  readonly lines: readonly number[];
  /** Whether there are more than that. */
  readonly isCut: boolean;
}

export const MOST_FOUND = 10_000;
const PIECE_CHARS = 256 * 1024;
/** The amount of text that a browser's tab can hold. Older text is dropped here; the server still has it. */
const MOST_CHARS = 384 * 1024 * 1024;
/** A line without an end that keeps overwriting itself: only its latest states matter. */
const OPEN_CHARS = 64 * 1024;
const SLICE_MS = 8;

export class LogStore {
  private readonly pieces: Piece[] = [];
  private chars = 0;
  private ended = 0;
  private open = "";
  private longestLine = 0;
  private changes = 0;
  private isTelling = false;
  private readonly listeners = new Set<() => void>();

  constructor(
    private readonly later: (notify: () => void) => void = (notify) => void requestAnimationFrame(notify),
    private readonly most = MOST_CHARS,
  ) {}

  append(text: string): void {
    if (text === "") return;
    const whole = this.open + text;
    const end = whole.lastIndexOf("\n") + 1;
    this.open = shortened(whole.slice(end));
    if (end > 0) this.addLines(whole.slice(0, end));
    this.notify();
  }

  /** Lines so far, with one that has no end yet. */
  get count(): number {
    return this.ended + (this.open === "" ? 0 : 1);
  }

  /** The first line that is still here. */
  get first(): number {
    return this.pieces[0]?.first ?? 0;
  }

  /** Letters in the longest line so far, about: escape sequences count too. */
  get longest(): number {
    return Math.max(this.longestLine, this.open.length);
  }

  /** A line without its end; undefined where there is none. */
  line(number: number): string | undefined {
    if (number === this.ended) return this.open === "" ? undefined : this.open;
    const piece = this.pieceWith(number);
    if (piece === undefined) return undefined;
    const start = piece.starts[number - piece.first] ?? 0;
    const next = piece.starts[number - piece.first + 1] ?? piece.text.length;
    return piece.text.slice(start, next - 1).replace(/\r$/, "");
  }

  /** Lines from one to before another, as one text. */
  text(from: number, to: number): string {
    const lines: string[] = [];
    for (let number = Math.max(from, this.first); number < Math.min(to, this.count); number += 1)
      lines.push(this.line(number) ?? "");
    return lines.join("\n");
  }

  /** Every line that matches. Lets the page breathe in between; `signal` ends it early. */
  async find(pattern: RegExp, signal: AbortSignal): Promise<Found> {
    const lines: number[] = [];
    let began = performance.now();
    for (const piece of [...this.pieces, { text: this.open, first: this.ended }]) {
      for (const line of matchingLines(piece.text, pattern)) {
        if (lines.length === MOST_FOUND) return { lines, isCut: true };
        lines.push(piece.first + line);
      }
      if (performance.now() - began > SLICE_MS) {
        await breath();
        began = performance.now();
      }
      if (signal.aborted) break;
    }
    return { lines, isCut: false };
  }

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  /** Changes with every notification. */
  version = (): number => this.changes;

  private addLines(text: string): void {
    const last = this.pieces.at(-1);
    const fits = last !== undefined && last.text.length + text.length <= PIECE_CHARS;
    const piece: Piece = fits ? last : { text: "", starts: [], first: this.ended };
    if (!fits) this.pieces.push(piece);
    const shift = piece.text.length;
    for (let at = 0; at < text.length;) {
      const end = text.indexOf("\n", at) + 1;
      piece.starts.push(shift + at);
      this.longestLine = Math.max(this.longestLine, end - at - 1);
      this.ended += 1;
      at = end;
    }
    piece.text += text;
    this.chars += text.length;
    while (this.chars > this.most && this.pieces.length > 1) this.chars -= this.pieces.shift()?.text.length ?? 0;
  }

  private pieceWith(number: number): Piece | undefined {
    let low = 0;
    let high = this.pieces.length - 1;
    while (low <= high) {
      const middle = (low + high) >> 1;
      const piece = this.pieces[middle];
      if (piece === undefined) return undefined;
      if (number < piece.first) high = middle - 1;
      else if (number >= piece.first + piece.starts.length) low = middle + 1;
      else return piece;
    }
    return undefined;
  }

  private notify(): void {
    if (this.isTelling) return;
    this.isTelling = true;
    this.later(() => {
      this.isTelling = false;
      this.changes += 1;
      for (const listener of this.listeners) listener();
    });
  }
}

/** The pattern for a query as users type it: literal, and case-insensitive. */
export function patternOf(query: string): RegExp {
  return new RegExp(query.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "gi");
}

/** Let the browser do what waits: drawing, clicks. */
export function breath(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve));
}

function shortened(open: string): string {
  if (open.length <= OPEN_CHARS) return open;
  const kept = open.indexOf("\r", open.length - OPEN_CHARS / 2);
  return kept < 0 ? open : open.slice(kept);
}

function* matchingLines(text: string, pattern: RegExp): Generator<number> {
  const plain = withoutSequences(text);
  const search = new RegExp(pattern.source, "gi");
  let line = 0;
  let counted = 0;
  for (let found = search.exec(plain); found !== null; found = search.exec(plain)) {
    for (let end = plain.indexOf("\n", counted); end >= 0 && end < found.index; end = plain.indexOf("\n", counted)) {
      line += 1;
      counted = end + 1;
    }
    yield line;
    const next = plain.indexOf("\n", found.index);
    if (next < 0) return;
    line += 1;
    counted = next + 1;
    search.lastIndex = counted;
  }
}
