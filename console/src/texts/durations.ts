/** Lengths of time as people write them, read by the server's own rules: `90s`, `2h`, `1d12h`. */

const SECONDS = { w: 604_800, d: 86_400, h: 3_600, m: 60, s: 1 } as const;
const UNITS = ["w", "d", "h", "m", "s"] as const;
const LONGEST_SECONDS = 3653 * 86_400;

const CLOCK = /^(?:(\d+)-)?(\d+):([0-5]\d):([0-5]\d)$/;

/** Seconds of "90", "90m", "1d12h" (the larger units first) or "1:30:00"; undefined where the text is no length of
 * time. */
export function parseDuration(text: string): number | undefined {
  const given = text.trim().toLowerCase();
  const seconds = /^\d+(\.\d+)?$/.test(given) ? Number(given) : (secondsOfClock(given) ?? secondsOfParts(given));
  return seconds === undefined || seconds > LONGEST_SECONDS ? undefined : seconds;
}

function secondsOfClock(text: string): number | undefined {
  const found = CLOCK.exec(text);
  if (found === null) return undefined;
  const [days = 0, hours = 0, minutes = 0, seconds = 0] = found.slice(1).map((part) => Number(part || 0));
  return ((days * 24 + hours) * 60 + minutes) * 60 + seconds;
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
    sum += Number(number) * SECONDS[unit];
  }
  return sum;
}

/** Seconds as the shortest text that reads back to the same: 5400 is "1h30m". */
export function durationText(seconds: number): string {
  let rest = Math.round(seconds * 1000) / 1000;
  let text = "";
  for (const unit of ["d", "h", "m"] as const) {
    const count = Math.floor(rest / SECONDS[unit]);
    rest -= count * SECONDS[unit];
    if (count > 0) text += `${count}${unit}`;
  }
  if (rest > 0 || text === "") text += `${Number(rest.toFixed(3))}s`;
  return text;
}
