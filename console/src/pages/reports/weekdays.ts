import { useMemo } from "react";

import { usePreferences } from "@/app/preferences";

/** A Monday, to count from as the API does. */
const MONDAY = Date.UTC(2024, 0, 1);
const DAY_MS = 86_400_000;

/** The days of the week in the viewer's language; Monday is 0. */
export function useWeekdays(): readonly string[] {
  const { language } = usePreferences();
  return useMemo(() => {
    const name = new Intl.DateTimeFormat(language === "zh" ? "zh-CN" : "en-GB", { weekday: "long", timeZone: "UTC" });
    return Array.from({ length: 7 }, (_, day) => name.format(new Date(MONDAY + day * DAY_MS)));
  }, [language]);
}
