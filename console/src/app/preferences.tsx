/** The user's preferences that the browser stores: the language. (The theme stores the colour scheme.) */
import { createContext, useContext, useEffect, useMemo, useState, type ReactNode } from "react";

import { remembered, remember } from "@/app/storage";

export type Language = "en" | "zh";

export const LANGUAGES: Readonly<Record<Language, string>> = { en: "English", zh: "简体中文" };

interface Preferences {
  readonly language: Language;
  readonly setLanguage: (language: Language) => void;
}

const Context = createContext<Preferences>({ language: "en", setLanguage: () => undefined });

export function PreferencesProvider({ children }: { children: ReactNode }) {
  const [language, setLanguage] = useState<Language>(() => remembered("language", isLanguage) ?? ofBrowser());
  useEffect(() => {
    document.documentElement.lang = language === "zh" ? "zh-CN" : "en";
    remember("language", language);
  }, [language]);
  const value = useMemo(() => ({ language, setLanguage }), [language]);
  return <Context value={value}>{children}</Context>;
}

export function usePreferences(): Preferences {
  return useContext(Context);
}

function isLanguage(value: unknown): value is Language {
  return value === "en" || value === "zh";
}

function ofBrowser(): Language {
  return navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
}
