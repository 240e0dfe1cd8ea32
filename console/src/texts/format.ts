/** Numbers, sizes and times as people read them, in the viewer's language and zone. */
import { usePreferences, type Language } from "@/app/preferences";

const KIB = 1024;
const BYTE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const DURATION_UNITS = { en: ["d", "h", "m", "s"], zh: [" 天", " 小时", " 分", " 秒"] } as const;
const DURATION_SECONDS = [86_400, 3_600, 60, 1];

export type Format = ReturnType<typeof formatsOf>;

export function useFormat(): Format {
  return formatIn(usePreferences().language);
}

/** Formats are made once per language: making one costs more than using it a thousand times. */
export function formatIn(language: Language): Format {
  return (made[language] ??= formatsOf(language));
}

const made: Partial<Record<Language, Format>> = {};

function formatsOf(language: Language) {
  const locale = language === "zh" ? "zh-CN" : "en-GB";
  const plain = new Intl.NumberFormat(locale, { maximumFractionDigits: 2 });
  const one = new Intl.NumberFormat(locale, { maximumFractionDigits: 1 });
  const absolute = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "medium" });
  const clock = new Intl.DateTimeFormat(locale, { hour: "2-digit", minute: "2-digit" });
  const exact = new Intl.DateTimeFormat(locale, { timeStyle: "medium", hour12: false });
  const date = new Intl.DateTimeFormat(locale, { day: "numeric", month: "short" });
  const day = new Intl.DateTimeFormat(locale, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
  const relative = new Intl.RelativeTimeFormat(locale, { numeric: "auto", style: "short" });

  return {
    number: (value: number) => plain.format(value),
    /** 0 … 1 as per cent; a dash where nothing was measured. */
    percent: (value: number | null | undefined, digits = 0) =>
      value === null || value === undefined ? "–" : `${(value * 100).toFixed(digits)}%`,
    bytes: (value: number | null | undefined) => (value === null || value === undefined ? "–" : bytes(value)),
    watts: (value: number | null | undefined) =>
      value === null || value === undefined
        ? "–"
        : value >= 10_000
          ? `${one.format(value / 1000)} kW`
          : `${Math.round(value)} W`,
    celsius: (value: number | null | undefined) =>
      value === null || value === undefined ? "–" : `${Math.round(value)} °C`,
    /** Two units at most: "3h 20m". */
    duration: (seconds: number | null | undefined) =>
      seconds === null || seconds === undefined ? "–" : duration(seconds, language),
    dateTime: (at: string | number | Date) => absolute.format(new Date(at)),
    time: (at: string | number | Date) => clock.format(new Date(at)),
    /** "10:00:05". */
    seconds: (at: string | number | Date) => exact.format(new Date(at)),
    /** "3 Jan". */
    day: (at: string | number | Date) => date.format(new Date(at)),
    /** "3 Jan, 10:00": where the year goes without saying. */
    dayTime: (at: string | number | Date) => day.format(new Date(at)),
    /** "3 min ago", "in 2 hr". */
    ago: (at: string | number | Date, now: number = Date.now()) => {
      const seconds = (new Date(at).getTime() - now) / 1000;
      const size = Math.abs(seconds);
      if (size < 60) return relative.format(Math.round(seconds), "second");
      if (size < 3_600) return relative.format(Math.round(seconds / 60), "minute");
      if (size < 86_400) return relative.format(Math.round(seconds / 3_600), "hour");
      return relative.format(Math.round(seconds / 86_400), "day");
    },
  };
}

function bytes(value: number): string {
  let rest = value;
  let unit = 0;
  while (Math.abs(rest) >= KIB && unit < BYTE_UNITS.length - 1) {
    rest /= KIB;
    unit += 1;
  }
  return `${rest >= 100 || unit === 0 ? Math.round(rest) : rest.toFixed(1).replace(/\.0$/, "")} ${BYTE_UNITS[unit]}`;
}

function duration(seconds: number, language: Language): string {
  const units = DURATION_UNITS[language];
  if (seconds > 0 && seconds < 1) return `< 1${units[3]}`;
  let rest = Math.round(seconds);
  const parts: string[] = [];
  for (const [index, size] of DURATION_SECONDS.entries()) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count > 0) parts.push(`${count}${units[index]}`);
    else if (parts.length > 0) break;
    if (parts.length === 2) break;
  }
  return parts.length === 0 ? `0${units[3]}` : parts.join(" ");
}
