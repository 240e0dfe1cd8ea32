/**
 * Every text of the console, in both languages side by side: a word without its translation does not compile.
 *
 *   const words = defineWords({ waiting: ["{n} {n|job waits|jobs wait}", "{n} 个作业在等待"] });
 *   const t = useWords(words);
 *   t("waiting", { n: 3 });
 */
import { useCallback } from "react";

import { usePreferences, type Language } from "@/app/preferences";

export type Pair = readonly [english: string, chinese: string];
export type Words = Readonly<Record<string, Pair>>;
export type Values = Readonly<Record<string, string | number>>;
export type Say<W extends Words> = (key: keyof W & string, values?: Values) => string;

export function defineWords<const W extends Words>(words: W): W {
  return words;
}

/** `{name}` is replaced by its value, `{name|one|many}` by the form that fits the number. */
export function fill(text: string, values: Values = {}): string {
  return text.replace(/\{(\w+)(?:\|([^|{}]*)\|([^|{}]*))?\}/g, (whole, name: string, one?: string, many?: string) => {
    const value = values[name];
    if (value === undefined) return whole;
    return one === undefined ? String(value) : Number(value) === 1 ? one : (many ?? "");
  });
}

export function say<W extends Words>(words: W, language: Language): Say<W> {
  return (key, values) => {
    const pair = words[key];
    return pair === undefined ? key : fill(pair[language === "zh" ? 1 : 0], values);
  };
}

export function useWords<W extends Words>(words: W): Say<W> {
  const { language } = usePreferences();
  return useCallback((key, values) => say(words, language)(key, values), [words, language]);
}
