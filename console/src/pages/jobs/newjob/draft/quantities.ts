/** Numbers as people write them, read by the server's own rules: shares of GPUs, CPUs, arrays. Undefined: not one. */
import { JobArray, JobCreate } from "@/api/limits";

const { mostIndexes, mostItems, largestIndex } = JobArray.array;

/** 0, a share below 1 with at most three decimals, or a whole number. */
export function gpusOf(text: string): number | undefined {
  const amount = plainNumber(text);
  if (amount === undefined || amount > JobCreate.gpus.most) return undefined;
  if (amount >= 1) return Number.isInteger(amount) ? amount : undefined;
  return Math.abs(amount * 1000 - Math.round(amount * 1000)) < 1e-6 ? amount : undefined;
}

export function cpusOf(text: string): number | undefined {
  const amount = plainNumber(text);
  return amount === undefined || amount > JobCreate.cpus.most || (amount > 0 && amount < 0.0005) ? undefined : amount;
}

export function wholeOf(text: string, least: number, most: number): number | undefined {
  const amount = /^\d+$/.test(text.trim()) ? Number(text) : undefined;
  return amount === undefined || amount < least || amount > most ? undefined : amount;
}

function plainNumber(text: string): number | undefined {
  return /^(\d+(\.\d*)?|\.\d+)$/.test(text.trim()) ? Number(text) : undefined;
}

/** How many jobs "0-99", "0-99:5" or "1,3,7" means. */
export function arraySizeOf(typed: string, isPacked = false): number | undefined {
  // Of a packed array the number of jobs may follow, as in 1-500%8.
  const text = isPacked ? typed.trim().replace(/%[1-9]\d{0,3}$/, "") : typed;
  const most = isPacked ? mostItems : mostIndexes;
  const indexes = new Set<number>();
  for (const part of text.replaceAll(" ", "").split(",")) {
    const match = /^(\d{1,7})(?:-(\d{1,7})(?::(\d{1,7}))?)?$/.exec(part);
    if (match === null) return undefined;
    const first = Number(match[1]);
    const last = Number(match[2] ?? first);
    const step = Number(match[3] ?? 1);
    if (last < first || step < 1 || last > largestIndex) return undefined;
    for (let index = first; index <= last; index += step) {
      if (indexes.has(index) || indexes.size >= most) return undefined;
      indexes.add(index);
    }
  }
  return indexes.size;
}
