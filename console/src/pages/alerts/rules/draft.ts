/** A rule as it is typed, and as the API takes it. */
import type { ALERT_ACTIONS } from "@/api/enumerations";
import type { RuleView, RuleSettings } from "@/pages/alerts/rules/sentence";
import { durationText, parseDuration } from "@/texts/durations";

export interface Draft {
  readonly name: string;
  readonly signal: string;
  readonly comparison: RuleView["comparison"];
  readonly threshold: string;
  readonly for_seconds: string;
  readonly clear_seconds: string;
  readonly severity: RuleView["severity"];
  readonly subjects: string[];
  readonly channels: string[];
  readonly actions: RuleView["actions"];
  readonly notify_resolved: boolean;
  readonly enabled: boolean;
  readonly description: string;
}

/** The subjects that an action can be carried out on. */
export const FITTING: Readonly<Record<(typeof ALERT_ACTIONS)[number], readonly string[]>> = {
  "cordon-node": ["gpu", "node"],
  "mark-gpu": ["gpu"],
  "requeue-job": ["gpu", "node"],
  "stop-job": ["gpu", "node"],
};

export function draftOf(rule: RuleView | undefined): Draft {
  if (rule === undefined) {
    return {
      name: "",
      signal: "gpu-temperature",
      comparison: "above",
      threshold: "",
      for_seconds: "1m",
      clear_seconds: "1m",
      severity: "warning",
      subjects: [],
      channels: [],
      actions: [],
      notify_resolved: true,
      enabled: true,
      description: "",
    };
  }
  return {
    name: rule.name,
    signal: rule.signal,
    comparison: rule.comparison,
    threshold: String(rule.threshold),
    for_seconds: durationText(rule.for_seconds),
    clear_seconds: durationText(rule.clear_seconds),
    severity: rule.severity,
    subjects: rule.subjects,
    channels: rule.channels,
    actions: rule.actions,
    notify_resolved: rule.notify_resolved,
    enabled: rule.enabled,
    description: rule.description,
  };
}

export function thresholdOf(text: string): number | undefined {
  const value = Number(text.trim());
  return text.trim() === "" || !Number.isFinite(value) ? undefined : value;
}

/** The name apart: it is fixed once the rule is there. */
export function bodyOf(draft: Draft) {
  const { name, threshold, ...rest } = draft;
  return { name, settings: { ...rest, threshold: thresholdOf(threshold) ?? 0 } };
}

/** The settings for the preview sentence; undefined until they are complete. */
export function previewOf(draft: Draft, unit: string): RuleSettings | undefined {
  const threshold = thresholdOf(draft.threshold);
  const holds = parseDuration(draft.for_seconds);
  const clear = parseDuration(draft.clear_seconds);
  if (threshold === undefined || holds === undefined || clear === undefined) return undefined;
  return { ...draft, unit, threshold, for_seconds: holds, clear_seconds: clear };
}
