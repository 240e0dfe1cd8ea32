/** Amounts of memory and storage as people write them: `64GiB` (binary), `64G` (decimal), or bytes. The API takes the same texts. */

const POWERS = ["", "k", "m", "g", "t", "p"];
const TEXT = /^(\d+(?:\.\d+)?)\s?([kmgtp]?)(i?)(b?)$/i;
const UNITS = ["TiB", "GiB", "MiB", "KiB"] as const;
const MOST_BYTES = 2 ** 60;

/** Bytes, or undefined where the text is no size, or too large. */
export function parseSize(text: string): number | undefined {
  const found = TEXT.exec(text.trim());
  if (found === null || (found[3] !== "" && found[2] === "")) return undefined;
  const power = POWERS.indexOf((found[2] ?? "").toLowerCase());
  const bytes = Number(found[1]) * (found[3] === "" ? 1000 : 1024) ** power;
  return bytes > MOST_BYTES ? undefined : Math.round(bytes);
}

/** A text that means exactly so many bytes, with the largest binary unit that divides them. */
export function sizeText(bytes: number): string {
  for (const [index, unit] of UNITS.entries()) {
    const size = 1024 ** (UNITS.length - index);
    if (bytes >= size && bytes % size === 0) return `${bytes / size}${unit}`;
  }
  return String(bytes);
}
