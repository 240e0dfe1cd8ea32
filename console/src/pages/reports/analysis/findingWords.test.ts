import { expect, test } from "vitest";

import { wordsOf } from "@/pages/reports/analysis/findingWords";
import { formatIn } from "@/texts/format";

const finding = {
  kind: "hot-gpu" as const,
  severity: "warning" as const,
  subject: "n1-gpu0",
  title: "GPU n1-gpu0 is 90 °C hot",
  text: "Its mean over the last 30m was 90 °C.",
  proposal: "Look at this GPU's own fan.",
  evidence: { temperature_celsius: 90, threshold_celsius: 85, node: "n1", model: "A10" },
};

test("a finding is said in the viewer's language", () => {
  expect(wordsOf(finding, "en", formatIn("en")).title).toBe(finding.title);
  expect(wordsOf(finding, "zh", formatIn("zh"))).toEqual({
    title: "GPU n1-gpu0 温度为 90 °C",
    text: "最近平均温度为 90 °C（上限 85 °C）。",
    proposal: "请检查节点 n1 的散热；在此之前可排空该节点：corral nodes drain n1。",
  });
});

test("without a number that a sentence needs, the server's words are shown", () => {
  const { title, proposal } = wordsOf({ ...finding, evidence: { temperature_celsius: 90 } }, "zh", formatIn("zh"));
  expect(title).toBe("GPU n1-gpu0 温度为 90 °C");
  expect(proposal).toBe(finding.proposal);
});
