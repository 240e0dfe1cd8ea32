/** Lengths of time as people write them: `90s`, `2h`, `1d12h`. The API takes the same texts. */

const SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400, w: 604_800 };
const TEXT = /^(\d+(\.\d+)?[smhdw])+$/;
const PART = /(\d+(?:\.\d+)?)([smhdw])/g;

/** Seconds, or undefined where the text is no length of time. */
export function parseDuration(text: string): number | undefined {
  const trimmed = text.replace(/\s+/g, "");
  if (/^\d+(\.\d+)?$/.test(trimmed)) return Number(trimmed);
  if (!TEXT.test(trimmed)) return undefined;
  return [...trimmed.matchAll(PART)].reduce(
    (sum, [, count, unit]) => sum + Number(count) * (SECONDS[unit ?? "s"] ?? 1),
    0,
  );
}

/** The shortest text that means so many seconds. */
export function durationText(seconds: number): string {
  let rest = Math.round(seconds);
  let text = "";
  for (const unit of ["d", "h", "m", "s"]) {
    const size = SECONDS[unit] ?? 1;
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count > 0) text += `${count}${unit}`;
  }
  return text === "" ? "0s" : text;
}
