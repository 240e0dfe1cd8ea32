import { Fragment, memo, useMemo, type CSSProperties } from "react";

import { parseLine, type Span, type Style } from "@/pages/jobs/logs/ansi";
import classes from "@/pages/jobs/logs/Logs.module.css";
import { texts } from "@/pages/jobs/logs/texts";
import { useTexts } from "@/texts/texts";

/** A row longer than that freezes any browser; the rest is in the file. */
const MOST_LETTERS = 20_000;

interface Props {
  /** Counted from 1, as people do. */
  readonly number: number;
  readonly line: string;
  readonly gutter: string;
  readonly pattern: RegExp | undefined;
  readonly isTarget: boolean;
}

export const LogRow = memo(function LogRow({ number, line, gutter, pattern, isTarget }: Props) {
  const t = useTexts(texts);
  const rest = line.length - MOST_LETTERS;
  const spans = useMemo(
    () => marked(parseLine(rest > 0 ? line.slice(0, MOST_LETTERS) : line), pattern),
    [line, rest, pattern],
  );
  return (
    <div className={isTarget ? `${classes.row} ${classes.target}` : classes.row} data-line={number}>
      <span className={classes.number} style={{ width: gutter }} aria-hidden>
        {number}
      </span>
      <span className={classes.text}>
        {spans.map((span, index) => (
          <Piece key={index} {...span} />
        ))}
        {rest > 0 && <i>{t("longLine", { n: rest })}</i>}
      </span>
    </div>
  );
});

interface Marked extends Span {
  readonly isMatch: boolean;
}

function Piece({ text, style, isMatch }: Marked) {
  if (isMatch) return <mark>{text}</mark>;
  return Object.keys(style).length === 0 ? <Fragment>{text}</Fragment> : <span style={css(style)}>{text}</span>;
}

/** Matches are found in what is seen, over all changes of colour. */
function marked(spans: readonly Span[], pattern: RegExp | undefined): Marked[] {
  if (pattern === undefined) return spans.map((span) => ({ ...span, isMatch: false }));
  const edges = [
    ...spans
      .map((span) => span.text)
      .join("")
      .matchAll(pattern),
  ].map((found) => [found.index, found.index + found[0].length] as const);
  let from = 0;
  return spans.flatMap((span) => {
    const pieces = cut(span, from, edges);
    from += span.text.length;
    return pieces;
  });
}

function cut(span: Span, from: number, edges: readonly (readonly [number, number])[]): Marked[] {
  const pieces: Marked[] = [];
  let at = 0;
  const add = (end: number, isMatch: boolean) => {
    if (end > at) pieces.push({ text: span.text.slice(at, end), style: span.style, isMatch });
    at = Math.max(at, end);
  };
  for (const [start, end] of edges) {
    if (end <= from || start >= from + span.text.length) continue;
    add(start - from, false);
    add(Math.min(end - from, span.text.length), true);
  }
  add(span.text.length, false);
  return pieces;
}

function css(style: Style): CSSProperties {
  const [fg, bg] = style.inverse ? [style.bg ?? "#0b111b", style.fg ?? 7] : [style.fg, style.bg];
  return {
    color: color(fg),
    // Letters of the colour of their ground would be there without being seen.
    backgroundColor: fg === bg ? undefined : color(bg),
    fontWeight: style.bold ? 700 : undefined,
    opacity: style.dim ? 0.75 : undefined,
    fontStyle: style.italic ? "italic" : undefined,
    textDecoration:
      [style.underline ? "underline" : "", style.strike ? "line-through" : ""].join(" ").trim() || undefined,
  };
}

function color(value: number | string | undefined): string | undefined {
  return typeof value === "number" ? `var(--ansi-${value})` : value;
}
