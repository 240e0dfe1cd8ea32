/** Amounts of budgets: integers in millionths of a GPU-hour or of the currency, never fractions of a float. */
export const MICRO = 1_000_000;

const AMOUNT = /^(-?)(\d{1,9})(?:\.(\d{1,6}))?$/;

/** Millionths of a number such as 12.50; undefined for other texts. */
export function parseMicro(text: string): number | undefined {
  const found = AMOUNT.exec(text.trim());
  if (found === null) return undefined;
  const [, sign, whole = "0", rest = ""] = found;
  const micro = Number(whole) * MICRO + Number(rest.padEnd(6, "0"));
  return sign === "-" ? -micro : micro;
}

/** The number as it is typed: 12.5 */
export function microText(micro: number): string {
  const whole = Math.trunc(Math.abs(micro) / MICRO);
  const rest = String(Math.abs(micro) % MICRO)
    .padStart(6, "0")
    .replace(/0+$/, "");
  return `${micro < 0 ? "-" : ""}${whole}${rest === "" ? "" : `.${rest}`}`;
}
