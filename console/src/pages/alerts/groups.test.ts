import { describe, expect, it } from "vitest";

import type { AlertView } from "@/pages/alerts/alert";
import { namesOf, shownAlerts } from "@/pages/alerts/groups";

function alert(id: number, rule: string, subject: string, more: Partial<AlertView> = {}): AlertView {
  return { id, rule, subject, severity: "warning", text: "", folded_into: null, ...more } as AlertView;
}

const ALERTS = [
  alert(1, "node-lost", "n1", { severity: "critical" }),
  alert(2, "gpu-errors", "g1", { folded_into: "node-lost of n1" }),
  alert(3, "gpu-errors", "g2", { folded_into: "node-lost of n1" }),
  alert(4, "gpu-errors", "g9", { folded_into: "node-lost of n7" }),
];
const ALL = { q: "", severity: "", rule: "", grouped: "yes" };

describe("alerts by cause", () => {
  it("lists an explained alert with its cause, unless the cause is over", () => {
    const shown = shownAlerts(ALERTS, ALL);
    expect(shown.map((one) => one.id)).toEqual([1, 4]);
    expect(shown[0]?.explains.map((one) => one.id)).toEqual([2, 3]);
    expect(namesOf(shown[0]?.explains ?? [])).toBe("gpu-errors of g1, gpu-errors of g2");
  });
  it("keeps a cause in the list while an alert that it explains is looked for", () => {
    expect(shownAlerts(ALERTS, { ...ALL, rule: "gpu-errors" }).map((one) => one.id)).toEqual([1, 4]);
    expect(shownAlerts(ALERTS, { ...ALL, q: "G9" }).map((one) => one.id)).toEqual([4]);
  });
  it("gives each alert a line where no groups are wanted", () => {
    expect(shownAlerts(ALERTS, { ...ALL, grouped: "" })).toHaveLength(4);
    expect(shownAlerts(ALERTS, { ...ALL, grouped: "", severity: "critical" }).map((one) => one.id)).toEqual([1]);
  });
});
