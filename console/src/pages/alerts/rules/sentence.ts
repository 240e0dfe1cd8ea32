/** A rule read back in a sentence, so that a slip shows before it is saved. */
import type { Schema } from "@/api/client";
import { useQuantity } from "@/pages/alerts/alert";
import { signals, texts } from "@/pages/alerts/rules/texts";
import { states } from "@/texts/common";
import { useFormat } from "@/texts/format";
import { useTextOr, useTexts } from "@/texts/texts";

export type RuleView = Schema<"RuleView">;
export type RuleSettings = Omit<RuleView, "name" | "builtin" | "scope" | "description">;

/** A signal that has no text here is described by the server. */
export function useSignalText(): (name: string, description?: string) => string {
  return useTextOr(signals);
}

/** The condition alone: "above 85 °C for 15s". */
export function useCondition(): (
  rule: Pick<RuleSettings, "comparison" | "threshold" | "unit" | "for_seconds">,
) => string {
  const t = useTexts(texts);
  const format = useFormat();
  const quantity = useQuantity();
  return (rule) =>
    `${t(rule.comparison)} ${quantity(rule.threshold, rule.unit)}${rule.for_seconds > 0 ? t("forLong", { length: format.duration(rule.for_seconds) }) : ""}`;
}

export function useSentence(): (rule: RuleSettings) => string {
  const t = useTexts(texts);
  const s = useTexts(states);
  const format = useFormat();
  const quantity = useQuantity();
  const signalText = useSignalText();
  return (rule) => {
    const fires = t("sentence", {
      severity: s(rule.severity),
      signal: signalText(rule.signal),
      where: rule.subjects.length === 0 ? "" : t("among", { subjects: rule.subjects.join(", ") }),
      comparison: t(rule.comparison),
      threshold: quantity(rule.threshold, rule.unit),
      duration: rule.for_seconds > 0 ? t("forLong", { length: format.duration(rule.for_seconds) }) : "",
      clear: format.duration(rule.clear_seconds),
    });
    const channels = rule.channels.length === 0 ? t("everyChannel") : rule.channels.join(", ");
    const notifies = t("notifySentence", { channels, resolved: rule.notify_resolved ? t("alsoResolved") : "" });
    const acts =
      rule.actions.length === 0
        ? ""
        : t("actSentence", { actions: rule.actions.map((action) => t(action)).join(", ") });
    return [fires, notifies, acts, rule.enabled ? "" : t("offSentence")].filter((part) => part !== "").join(" ");
  };
}
