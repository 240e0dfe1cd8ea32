/** Whether a silence is about an alert: its patterns know * for anything and ? for any one character. */
import type { Schema } from "@/api/client";

export function isCovered(alert: Schema<"AlertView">, silences: readonly Schema<"SilenceView">[]): boolean {
  return silences.some((silence) => fits(silence.rule, alert.rule) && fits(silence.subject, alert.subject));
}

function fits(pattern: string, text: string): boolean {
  const plain = pattern.replace(/[\\^$.|+()[\]{}]/g, "\\$&");
  return new RegExp(`^${plain.replaceAll("*", ".*").replaceAll("?", ".")}$`, "u").test(text);
}
