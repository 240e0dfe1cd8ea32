/** Alerts by cause: an alert that another one explains is listed with that one, not on a line of its own. */
import type { AlertView } from "@/pages/alerts/alert";

export interface ShownAlert extends AlertView {
  /** The alerts that this one explains. */
  readonly explains: readonly AlertView[];
}

export interface AlertChoice {
  readonly q: string;
  readonly severity: string;
  readonly rule: string;
  /** Empty: each alert has a line of its own. */
  readonly grouped: string;
}

/** The name by which an explained alert refers to its cause. */
export function nameOf(alert: AlertView): string {
  return `${alert.rule} of ${alert.subject}`;
}

export function shownAlerts(alerts: readonly AlertView[], choice: AlertChoice): readonly ShownAlert[] {
  const text = choice.q.trim().toLowerCase();
  const fits = (alert: AlertView) =>
    (choice.severity === "" || alert.severity === choice.severity) &&
    (choice.rule === "" || alert.rule === choice.rule) &&
    (text === "" || `${alert.rule} ${alert.subject} ${alert.text}`.toLowerCase().includes(text));
  return grouped(alerts, choice.grouped !== "").filter((alert) => fits(alert) || alert.explains.some(fits));
}

function grouped(alerts: readonly AlertView[], byCause: boolean): readonly ShownAlert[] {
  const names = new Set(alerts.map(nameOf));
  // An alert whose cause is over stands for itself.
  const isExplained = (alert: AlertView) => byCause && alert.folded_into !== null && names.has(alert.folded_into);
  return alerts
    .filter((alert) => !isExplained(alert))
    .map((alert) => ({
      ...alert,
      explains: byCause ? alerts.filter((other) => isExplained(other) && other.folded_into === nameOf(alert)) : [],
    }));
}

const MOST_NAMES = 3;

/** A few names, and how many more. */
export function namesOf(alerts: readonly AlertView[]): string {
  const names = alerts.map(nameOf);
  const rest = names.length - MOST_NAMES;
  return rest > 1 ? `${names.slice(0, MOST_NAMES).join(", ")} + ${rest}` : names.join(", ");
}
