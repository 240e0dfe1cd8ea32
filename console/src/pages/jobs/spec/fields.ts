/**
 * The plain fields of a job: values that are typed as one text and sent as they are. A row is all that the form for a new job,
 * its checks, the request, the review, a clone, the copied job file, the edit form and the page of a job need. A test compares
 * the rows with the API's description.
 */
import type { Schema } from "@/api/client";
import { JobCreate } from "@/api/limits";
import { durationText } from "@/texts/durations";
import type { Pair } from "@/texts/texts";

type Job = Schema<"JobView">;

/** Where the form has the field: below the name, or in a part of the step about the program. */
export type Place = "name" | "surroundings" | "order" | "more";

interface Row {
  /** In the API's requests. */
  readonly name: string;
  /** `lines` is a text of several lines. */
  readonly type: "lines" | "path" | "whole" | "duration";
  /** The limits of a number, of a duration in seconds, or of the length of a text. */
  readonly least?: number;
  readonly most?: number;
  /** The value in the API's view of a job. */
  readonly read: (job: Job) => string | number | null | undefined;
  readonly place: Place;
  readonly label: Pair;
  readonly hint?: Pair;
  readonly placeholder?: string;
  /** The flag of the commands and the key of job files, if they are not made from the name. */
  readonly flag?: string;
  /** Whether workbenches have the field, too. */
  readonly isForWorkbenches?: boolean;
  /** Whether `corral preset run` has a flag for the field. */
  readonly isForPresetRun?: boolean;
  /** Whether the page of a job lists the field beside its own facts. */
  readonly isOnPage?: boolean;
  /** Whether the field can be changed at any time. */
  readonly isAlwaysEditable?: boolean;
}

export const PLAIN_FIELDS = [
  {
    name: "description",
    type: "lines",
    ...JobCreate.description,
    read: (job) => job.description,
    place: "name",
    label: ["Description", "说明"],
    hint: ["What it is for; it can be changed at any time", "用途说明，可随时修改"],
    isForWorkbenches: true,
    isForPresetRun: true,
    isOnPage: true,
    isAlwaysEditable: true,
  },
  {
    name: "workdir",
    type: "path",
    read: (job) => job.workdir,
    place: "surroundings",
    label: ["Working directory", "工作目录"],
    hint: ["A path on the nodes; empty: the job's own directory", "节点上的路径；留空则为作业自己的目录"],
    placeholder: "/data/project",
    isForWorkbenches: true,
    isForPresetRun: true,
  },
  {
    name: "git",
    type: "lines",
    ...JobCreate.git,
    read: (job) => job.git,
    place: "surroundings",
    label: ["Git repository", "Git 仓库"],
    hint: [
      "The program begins in a commit of it, instead of a working directory",
      "程序在该仓库的某个提交中启动，代替工作目录",
    ],
    placeholder: "https://git.example.org/team/project.git",
    isOnPage: true,
  },
  {
    name: "git_ref",
    type: "lines",
    ...JobCreate.git_ref,
    read: (job) => job.git_ref,
    place: "surroundings",
    label: ["Branch, tag or commit", "分支、标签或提交"],
    hint: ["Empty: the repository's own branch", "留空则为仓库的默认分支"],
    placeholder: "main",
    isOnPage: true,
  },
  {
    name: "git_dir",
    type: "lines",
    ...JobCreate.git_dir,
    read: (job) => job.git_dir,
    place: "surroundings",
    label: ["Directory of the repository", "仓库中的目录"],
    placeholder: "experiments/first",
  },
  {
    name: "git_secret",
    type: "lines",
    ...JobCreate.git_secret,
    read: (job) => job.git_secret,
    place: "surroundings",
    label: ["Secret for the repository", "仓库的密钥"],
    hint: ["The name of a secret with a deploy key or token", "含有部署密钥或令牌的机密的名称"],
    placeholder: "deploy-key",
  },
  {
    name: "venv",
    type: "path",
    read: (job) => job.venv,
    place: "surroundings",
    label: ["Virtual environment", "虚拟环境"],
    hint: [
      "A venv or conda prefix on the nodes, whose programs come first",
      "节点上的 venv 或 conda 目录，优先使用其中的程序",
    ],
    placeholder: "/opt/venvs/torch",
    isForWorkbenches: true,
  },
  {
    name: "time",
    type: "duration",
    read: (job) => job.time_limit_seconds,
    place: "order",
    label: ["Time limit", "时限"],
    hint: ["Such as 90m, 2h or 1d12h; a limit helps it start earlier", "例如 90m、2h 或 1d12h；设置时限有助于更早启动"],
    placeholder: "2h",
    isForWorkbenches: true,
    isForPresetRun: true,
  },
  {
    name: "priority",
    type: "whole",
    ...JobCreate.priority,
    read: (job) => job.priority,
    place: "order",
    label: ["Priority", "优先级"],
    hint: ["0 to 100; smaller goes first, 5 is usual", "0–100，数值小者优先，通常为 5"],
    placeholder: "5",
    isForWorkbenches: true,
    isForPresetRun: true,
  },
  {
    name: "max_retries",
    type: "whole",
    ...JobCreate.max_retries,
    read: (job) => job.max_retries,
    place: "order",
    label: ["Retries", "重试次数"],
    hint: [
      "After failures of the program, where --retry-on or the installation asks for them",
      "程序失败后重试的次数，需由 --retry-on 或平台设置开启",
    ],
    placeholder: "3",
    flag: "retries",
  },
  {
    name: "checkpoint_interval",
    type: "duration",
    ...JobCreate.checkpoint_interval,
    read: (job) => job.checkpoint_interval_seconds,
    place: "more",
    label: ["Checkpoint interval", "检查点间隔"],
    hint: ["How often the program shall save, such as 10m", "程序保存的频率，例如 10m"],
    placeholder: "10m",
  },
  {
    name: "commit_outputs",
    type: "lines",
    ...JobCreate.commit_outputs,
    read: (job) => job.commit_outputs,
    place: "more",
    label: ["Commit outputs", "提交输出"],
    hint: [
      "DATASET or DATASET=PATH: a new version when the job completes",
      "DATASET 或 DATASET=PATH：作业完成后生成新版本",
    ],
    placeholder: "weights=best",
    flag: "commit",
    isForPresetRun: true,
  },
  {
    name: "grace",
    type: "duration",
    ...JobCreate.grace,
    read: (job) => job.grace_seconds,
    place: "more",
    label: ["Grace time", "宽限时间"],
    hint: ["Between the warning and the end of a stop", "停止时从警告到结束的时间"],
    placeholder: "30s",
  },
] as const satisfies readonly Row[];

export type PlainName = (typeof PLAIN_FIELDS)[number]["name"];
export interface PlainField extends Row {
  readonly name: PlainName;
}
/** Every plain field as it is typed. */
export type PlainValues = Readonly<Record<PlainName, string>>;

const ROWS: readonly PlainField[] = PLAIN_FIELDS;

export const LABELS = textsOf((row) => row.label);
export const HINTS = textsOf((row) => row.hint ?? ["", ""]);

/** The rows that a kind of job has. */
export function plainFieldsOf(isWorkbench: boolean): readonly PlainField[] {
  return ROWS.filter((row) => !isWorkbench || row.isForWorkbenches === true);
}

/** The value of a job as a user would type it. */
export function typedValue(row: PlainField, job: Job): string {
  return String(shownValue(row, job) ?? "");
}

/** The value of a job as a request contains it; undefined if the job has none. */
export function shownValue(row: PlainField, job: Job): string | number | undefined {
  const value = row.read(job) ?? undefined;
  return row.type === "duration" && typeof value === "number" ? durationText(value) : value;
}

/** The typed value as a request contains it; undefined if nothing was typed. */
export function sentValue(row: PlainField, typed: string): string | number | undefined {
  const text = typed.trim();
  if (text === "") return undefined;
  return row.type === "whole" ? Number(text) : text;
}

export function eachPlain<T>(value: (row: PlainField) => T): Readonly<Record<PlainName, T>> {
  return Object.fromEntries(ROWS.map((row) => [row.name, value(row)])) as Record<PlainName, T>;
}

function textsOf(text: (row: PlainField) => Pair): Readonly<Record<PlainName, Pair>> {
  return eachPlain(text);
}
