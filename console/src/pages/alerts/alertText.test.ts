import { expect, test } from "vitest";

import { alertText } from "@/pages/alerts/alertText";
import type { AlertView } from "@/pages/alerts/alert";
import { formatIn } from "@/texts/format";

const alert = {
  rule: "job-failed",
  subject: "j-7",
  owner: "ann",
  value: 1,
  unit: "",
  text: "job j-7 (train) of ann failed: exit code 1",
} as AlertView;
const hot = { ...alert, rule: "gpu-temperature", subject: "n1-gpu0", owner: null, value: 96, unit: "°C" };

test("an alert is a sentence in the viewer's language", () => {
  expect(alertText(alert, "en", formatIn("en"))).toBe("Job j-7 (train) of ann failed: exit code 1");
  expect(alertText(alert, "zh", formatIn("zh"))).toBe("ann 的作业 j-7 失败");
  expect(alertText(hot, "zh", formatIn("zh"))).toBe("GPU n1-gpu0 温度为 96 °C");
});

test("of a rule of an operator the server's words are shown", () => {
  expect(alertText({ ...alert, rule: "our-own" }, "zh", formatIn("zh"))).toContain("exit code 1");
});
