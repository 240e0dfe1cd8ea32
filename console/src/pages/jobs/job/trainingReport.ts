/** The report of a preset's training (`report.json` in its outputs). A job writes it, so everything in it is checked. */
export interface TrainingReport {
  readonly title: string;
  readonly facts: readonly (readonly [string, string])[];
  readonly classes: readonly string[];
  /** Names of the measures, each with a value for every epoch. */
  readonly curves: readonly { readonly name: string; readonly values: readonly number[] }[];
  readonly epochs: readonly number[];
  /** A row for each right class, a column for each found one. */
  readonly confusion: readonly (readonly number[])[] | undefined;
  readonly averagePrecision: readonly (readonly [string, number])[] | undefined;
}

type Values = Readonly<Record<string, unknown>>;

/** Undefined if the text is not such a report. */
export function trainingReport(text: string): TrainingReport | undefined {
  let stored: unknown;
  try {
    stored = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isValues(stored) || !Array.isArray(stored.history) || !stored.history.every(isValues)) return undefined;
  const history = stored.history as readonly Values[];
  const names = texts(stored.curves).filter((name) => history.every((entry) => Number.isFinite(entry[name])));
  if (history.length === 0 || names.length === 0) return undefined;
  const report: Values = stored;
  return {
    title: String(stored.title ?? ""),
    facts: texts(stored.facts).map((name) => [name.replaceAll("_", " "), shown(report[name])] as const),
    classes: texts(stored.classes),
    curves: names.map((name) => ({ name, values: history.map((entry) => Number(entry[name])) })),
    epochs: history.map((entry, place) => (Number.isFinite(entry.epoch) ? Number(entry.epoch) : place + 1)),
    confusion: matrix(stored.confusion, texts(stored.classes).length),
    averagePrecision: isValues(stored.average_precision)
      ? Object.entries(stored.average_precision).map(([name, value]) => [name, Number(value)] as const)
      : undefined,
  };
}

function isValues(value: unknown): value is Values {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function texts(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === "string") : [];
}

function shown(value: unknown): string {
  return typeof value === "number" ? String(Math.round(value * 1e4) / 1e4) : String(value ?? "");
}

function matrix(value: unknown, size: number): readonly (readonly number[])[] | undefined {
  const isRight =
    Array.isArray(value) &&
    value.length === size &&
    value.every((row) => Array.isArray(row) && row.length === size && row.every(Number.isFinite));
  return isRight ? (value as number[][]) : undefined;
}
