/** Amounts as people write them, read by the server's own rules: durations, sizes, shares, arrays. Undefined: not one. */

const UNIT_SECONDS = { w: 604_800, d: 86_400, h: 3_600, m: 60, s: 1 } as const;
const UNITS = ["w", "d", "h", "m", "s"] as const;
const LONGEST_SECONDS = 3653 * 86_400;
const MOST_BYTES = 2 ** 60;
const POWERS: Readonly<Record<string, number>> = { "": 0, k: 1, m: 2, g: 3, t: 4, p: 5 };
const MOST_INDEXES = 1_000;
const LARGEST_INDEX = 1_000_000;

/** Seconds of "90", "90m" or "1d12h"; the larger units come first. */
export function secondsOf(text: string): number | undefined {
  const given = text.trim().toLowerCase();
  const seconds = /^\d+(\.\d+)?$/.test(given) ? Number(given) : secondsOfParts(given);
  return seconds === undefined || seconds > LONGEST_SECONDS ? undefined : seconds;
}

function secondsOfParts(text: string): number | undefined {
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)([wdhms])/g)];
  if (parts.length === 0 || parts.map((part) => part[0]).join("") !== text) return undefined;
  let before = -1;
  let sum = 0;
  for (const [, number, letter] of parts) {
    const unit = UNITS.find((one) => one === letter);
    if (unit === undefined || UNITS.indexOf(unit) <= before) return undefined;
    before = UNITS.indexOf(unit);
    sum += Number(number) * UNIT_SECONDS[unit];
  }
  return sum;
}

/** Seconds as the shortest text that reads back to the same: 5400 is "1h30m". */
export function durationText(seconds: number): string {
  let left = Math.round(seconds);
  let text = "";
  for (const unit of ["d", "h", "m", "s"] as const) {
    const count = Math.floor(left / UNIT_SECONDS[unit]);
    if (count > 0) text += `${count}${unit}`;
    left -= count * UNIT_SECONDS[unit];
  }
  return text || "0s";
}

/** Bytes of "16GiB" (binary), "500M" (decimal) or a plain number. */
export function bytesOf(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?) ?([kmgtp]?)(i?)(b?)$/i.exec(text.trim());
  if (match === null || (match[3] !== "" && match[2] === "")) return undefined;
  const size = Number(match[1]) * (match[3] === "" ? 1000 : 1024) ** (POWERS[(match[2] ?? "").toLowerCase()] ?? 0);
  return size > MOST_BYTES ? undefined : Math.round(size);
}

/** Bytes as a text that reads back to exactly the same. */
export function sizeText(bytes: number): string {
  for (const [unit, power] of [
    ["TiB", 4],
    ["GiB", 3],
    ["MiB", 2],
    ["KiB", 1],
  ] as const) {
    if (bytes >= 1024 ** power && bytes % 1024 ** power === 0) return `${bytes / 1024 ** power}${unit}`;
  }
  return String(bytes);
}

/** 0, a share below 1 with at most three decimals, or a whole number. */
export function gpusOf(text: string): number | undefined {
  const amount = plainNumber(text);
  if (amount === undefined || amount > 1_000_000) return undefined;
  if (amount >= 1) return Number.isInteger(amount) ? amount : undefined;
  return Math.abs(amount * 1000 - Math.round(amount * 1000)) < 1e-6 ? amount : undefined;
}

export function cpusOf(text: string): number | undefined {
  const amount = plainNumber(text);
  return amount === undefined || amount > 1_000_000 || (amount > 0 && amount < 0.0005) ? undefined : amount;
}

export function wholeOf(text: string, least: number, most: number): number | undefined {
  const amount = /^\d+$/.test(text.trim()) ? Number(text) : undefined;
  return amount === undefined || amount < least || amount > most ? undefined : amount;
}

function plainNumber(text: string): number | undefined {
  return /^(\d+(\.\d*)?|\.\d+)$/.test(text.trim()) ? Number(text) : undefined;
}

/** How many jobs "0-99", "0-99:5" or "1,3,7" means. */
export function arraySizeOf(text: string): number | undefined {
  const indexes = new Set<number>();
  for (const part of text.replaceAll(" ", "").split(",")) {
    const match = /^(\d{1,7})(?:-(\d{1,7})(?::(\d{1,7}))?)?$/.exec(part);
    if (match === null) return undefined;
    const first = Number(match[1]);
    const last = Number(match[2] ?? first);
    const step = Number(match[3] ?? 1);
    if (last < first || step < 1 || last > LARGEST_INDEX) return undefined;
    for (let index = first; index <= last; index += step) {
      if (indexes.has(index) || indexes.size >= MOST_INDEXES) return undefined;
      indexes.add(index);
    }
  }
  return indexes.size;
}
