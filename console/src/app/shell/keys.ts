/** Keys of the whole console: `?` shows them, `g` and a letter opens a page, `n` a new job. */
import { PAGES } from "@/app/pages";

export interface Binding {
  /** Pressed one after another. */
  readonly keys: readonly string[];
  /** The address of the page. */
  readonly path: string;
}

export const BINDINGS: readonly Binding[] = [
  { keys: ["n"], path: "/jobs/new" },
  { keys: ["g", "o"], path: "/" },
  { keys: ["g", "j"], path: "/jobs" },
  { keys: ["g", "i"], path: "/inbox" },
  { keys: ["g", "q"], path: "/queue" },
  { keys: ["g", "w"], path: "/workbenches" },
  { keys: ["g", "r"], path: "/reservations" },
  { keys: ["g", "v"], path: "/volumes" },
  { keys: ["g", "d"], path: "/datasets" },
  { keys: ["g", "n"], path: "/nodes" },
  { keys: ["g", "g"], path: "/gpus" },
  { keys: ["g", "a"], path: "/alerts" },
  { keys: ["g", "u"], path: "/users" },
  { keys: ["g", "s"], path: "/settings" },
];

/** The bindings that a viewer can use. */
export function bindingsFor(isOperator: boolean): readonly Binding[] {
  return BINDINGS.filter(({ path }) => {
    const page = PAGES.find((one) => one.path === path);
    return page !== undefined && (page.audience === "everyone" || isOperator);
  });
}

/** Two keys belong together if they are pressed within this time. */
const TOGETHER_MS = 1_500;

export interface Pressed {
  readonly keys: readonly string[];
  readonly at: number;
}

export const NOTHING: Pressed = { keys: [], at: 0 };

/** Adds a key to those pressed so far, and finds the page to open if they are a whole binding. */
export function press(
  before: Pressed,
  key: string,
  at: number,
  bindings: readonly Binding[],
): { readonly pressed: Pressed; readonly path: string | undefined } {
  const earlier = at - before.at <= TOGETHER_MS ? before.keys : [];
  for (const keys of [[...earlier, key], [key]]) {
    const whole = bindings.find((binding) => binding.keys.join(" ") === keys.join(" "));
    if (whole !== undefined) return { pressed: NOTHING, path: whole.path };
    const begins = bindings.some((binding) => `${binding.keys.join(" ")} `.startsWith(`${keys.join(" ")} `));
    if (begins) return { pressed: { keys, at }, path: undefined };
  }
  return { pressed: NOTHING, path: undefined };
}
