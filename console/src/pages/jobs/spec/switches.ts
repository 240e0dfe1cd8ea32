/**
 * The yes-or-no fields of a job. A row is all that the form for a new job, the request, the review, a clone and the copied job
 * file need; workbenches have none of them. A test compares the rows with the API's description.
 */
import type { Schema } from "@/api/client";
import type { Pair } from "@/texts/texts";

interface Row {
  /** In the API's requests and in its view of a job. */
  readonly name: keyof Schema<"JobCreate"> & keyof Schema<"JobView">;
  /** The server's default: a request leaves it out. */
  readonly usual: boolean;
  readonly label: Pair;
  readonly hint?: Pair;
}

export const SWITCHES = [
  {
    name: "preemptible",
    usual: true,
    label: ["Preemptible", "可抢占"],
    hint: [
      "It may be preempted: it is asked to save and continues later. In return it may use lent and borrowed GPUs.",
      "可能被抢占：系统会要求其保存进度，之后恢复运行。作为交换，可使用借出的 GPU。",
    ],
  },
  {
    name: "idles",
    usual: false,
    label: ["It may hold GPUs without using them for long", "可能长时间占用而不使用 GPU"],
  },
  {
    name: "restart_if_hung",
    usual: false,
    label: ["Restart it elsewhere if its program hangs", "程序停滞时在别处重新启动"],
  },
] as const satisfies readonly Row[];

export type SwitchName = (typeof SWITCHES)[number]["name"];
export interface SwitchField extends Row {
  readonly name: SwitchName;
}
export type SwitchValues = Readonly<Record<SwitchName, boolean>>;

export const SWITCH_ROWS: readonly SwitchField[] = SWITCHES;
export const SWITCH_LABELS = eachSwitch((row) => row.label);
export const SWITCH_HINTS = eachSwitch((row): Pair => row.hint ?? ["", ""]);

export function eachSwitch<T>(value: (row: SwitchField) => T): Readonly<Record<SwitchName, T>> {
  return Object.fromEntries(SWITCHES.map((row) => [row.name, value(row)])) as Record<SwitchName, T>;
}

/** The values as a request contains them: undefined for the server's default. */
export function sentSwitches(values: SwitchValues): Readonly<Record<SwitchName, boolean | undefined>> {
  return eachSwitch((row) => (values[row.name] === row.usual ? undefined : values[row.name]));
}
