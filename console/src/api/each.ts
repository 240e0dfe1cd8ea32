/** One request for each of several things: those that are refused do not stop the others. */
import { problemOf, type Problem } from "@/api/problem";

export interface Refused {
  readonly name: string;
  readonly problem: Problem;
}

export interface Outcome {
  readonly done: readonly string[];
  readonly refused: readonly Refused[];
}

/** `atOnce` requests run side by side; `onProgress` hears how many have ended. */
export async function runEach(
  names: readonly string[],
  run: (name: string) => Promise<unknown>,
  onProgress: (ended: number) => void = () => undefined,
  atOnce = 4,
): Promise<Outcome> {
  const done: string[] = [];
  const refused: Refused[] = [];
  const waiting = [...names];
  async function work(): Promise<void> {
    for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
      try {
        await run(name);
        done.push(name);
      } catch (error) {
        refused.push({ name, problem: problemOf(error) });
      }
      onProgress(done.length + refused.length);
    }
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, names.length) }, work));
  return { done, refused };
}
