/** An alert as a sentence, in the viewer's language. */
import type { Schema } from "@/api/client";
import { usePreferences, type Language } from "@/app/preferences";
import { sentences } from "@/pages/alerts/sentences.texts";
import { unitFor } from "@/pages/alerts/units";
import { useFormat, type Format } from "@/texts/format";
import { capital, fill } from "@/texts/texts";

type Alert = Schema<"AlertView">;

/** A value with its unit: "97 °C". */
export function quantityText(value: number, unit: string, format: Format): string {
  if (unit === "") return format.number(value);
  return unit === "%" ? `${format.number(value)}%` : `${format.number(value)} ${unitFor(value, unit)}`;
}

/** The server's English names models, nodes and reasons; the sentences of other languages are made from the numbers. */
export function alertText(alert: Alert, language: Language, format: Format): string {
  const { rule, subject, owner, value, unit } = alert;
  if (language === "en" || !Object.hasOwn(sentences, rule)) return capital(alert.text);
  const values = { subject, owner: owner ?? "–", value: quantityText(value, unit, format) };
  return fill(sentences[rule as keyof typeof sentences][1], values);
}

export function useAlertText(): (alert: Alert) => string {
  const { language } = usePreferences();
  const format = useFormat();
  return (alert) => alertText(alert, language, format);
}
