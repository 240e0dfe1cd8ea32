/**
 * Every text of the console, in both languages side by side: a text without its translation does not compile.
 *
 *   const texts = defineTexts({ waiting: ["{n} {n|job waits|jobs wait}", "{n} 个作业在等待"] });
 *   const t = useTexts(texts);
 *   t("waiting", { n: 3 });
 */
import { useCallback } from "react";

import { usePreferences, type Language } from "@/app/preferences";

export type Pair = readonly [english: string, chinese: string];
export type Texts = Readonly<Record<string, Pair>>;
export type Values = Readonly<Record<string, string | number>>;
export type Say<W extends Texts> = (key: keyof W & string, values?: Values) => string;

export function defineTexts<const W extends Texts>(texts: W): W {
  return texts;
}

/** `{name}` is replaced by its value, `{name|one|many}` by the form that fits the number. */
export function fill(text: string, values: Values = {}): string {
  return text.replace(/\{(\w+)(?:\|([^|{}]*)\|([^|{}]*))?\}/g, (whole, name: string, one?: string, many?: string) => {
    const value = values[name];
    if (value === undefined) return whole;
    return one === undefined ? String(value) : Number(value) === 1 ? one : (many ?? "");
  });
}

/** With a capital at the beginning. */
export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

export function say<W extends Texts>(texts: W, language: Language): Say<W> {
  return (key, values) => {
    const pair = texts[key];
    return pair === undefined ? key : fill(pair[language === "zh" ? 1 : 0], values);
  };
}

/** The text of a value that the server may know and the console may not: then it is `other`, by default the value itself. */
export function sayOr(texts: Texts, language: Language): (value: string, other?: string) => string {
  return (value, other = value) => (Object.hasOwn(texts, value) ? say(texts, language)(value) : other);
}

export function useTextOr(texts: Texts): (value: string, other?: string) => string {
  const { language } = usePreferences();
  return useCallback((value, other) => sayOr(texts, language)(value, other), [texts, language]);
}

export function useTexts<W extends Texts>(texts: W): Say<W> {
  const { language } = usePreferences();
  return useCallback((key, values) => say(texts, language)(key, values), [texts, language]);
}
