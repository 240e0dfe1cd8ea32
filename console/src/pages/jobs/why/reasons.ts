/** Why a job waits, in the viewer's language. */
import { usePreferences } from "@/app/preferences";
import type { Schema } from "@/api/client";
import { MICRO } from "@/parts/micro";
import { never, resources, sentences, titles } from "@/pages/jobs/why/texts";
import { useFormat, type Format } from "@/texts/format";
import { capital, fill, say, useTexts, type Values } from "@/texts/texts";
import type { Language } from "@/app/preferences";

export type Reason = Schema<"ReasonView">;

/** Numbers as people read them: durations and sizes by their names. */
export function shownNumber(name: string, value: unknown, format: Format): string {
  if (typeof value !== "number") return String(value);
  if (name.includes("seconds")) return format.duration(value);
  if (name.includes("memory_bytes")) return format.bytes(value);
  if (name.endsWith("_micro")) return format.number(value / MICRO);
  return format.number(value);
}

/** The sentence for a rule, or the server's own English words where there is none. */
export function sentenceOf(reason: Reason, language: Language, format: Format): string {
  const rule = reason.rule === "dependency" && "seconds_left" in reason.numbers ? "dependencyUntil" : reason.rule;
  // The server's English names jobs, pools and models: nothing that is made from the numbers could say more.
  if (language === "en" || !isKnown(rule)) return capital(reason.detail);
  const isMemory = reason.numbers.resource === "memory_bytes";
  const values: Record<string, string | number> = {};
  for (const [name, value] of Object.entries(reason.numbers)) {
    const unit = isMemory && name !== "resource" ? "memory_bytes" : name;
    values[name] =
      name === "resource"
        ? say(resources, language)(String(value) as keyof typeof resources)
        : shownNumber(unit, value, format);
  }
  const text = filled(rule, language, values);
  if (text === undefined) return capital(reason.detail);
  return isPermanent(reason) ? `${text}${never[language === "zh" ? 1 : 0]}` : text;
}

/** Whether the job alone asks for more than the limit. */
function isPermanent({ numbers }: Reason): boolean {
  return typeof numbers.asked === "number" && typeof numbers.limit === "number" && numbers.asked > numbers.limit;
}

/** Undefined where a number is missing that the sentence needs. */
function filled(rule: keyof typeof sentences, language: Language, values: Values): string | undefined {
  const text = fill(sentences[rule][language === "zh" ? 1 : 0], values);
  return /\{\w+/.test(text) ? undefined : text;
}

export function isKnown(rule: string): rule is keyof typeof sentences {
  return rule in sentences;
}

export function useReasons(): {
  readonly title: (reason: Reason) => string;
  readonly sentence: (reason: Reason) => string;
} {
  const { language } = usePreferences();
  const format = useFormat();
  const t = useTexts(titles);
  return {
    title: (reason) => (reason.rule in titles ? t(reason.rule as keyof typeof titles) : reason.rule),
    sentence: (reason) => sentenceOf(reason, language, format),
  };
}
