/** Units of alerts, some of which are nouns: "GPUs", "jobs". */

/** The unit after a value: "1 GPU", "2 GPUs". */
export const unitFor = (value: number, unit: string) =>
  value === 1 && unit.length > 2 && unit.endsWith("s") ? unit.slice(0, -1) : unit;
