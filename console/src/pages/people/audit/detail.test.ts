import { expect, test } from "vitest";

import { brief, differences, facts, shown } from "@/pages/people/audit/detail";
import { formatIn } from "@/texts/format";

const format = formatIn("en");
const said = (detail: Record<string, unknown>, language: "en" | "zh" = "en") =>
  brief({ detail } as Parameters<typeof brief>[0], language, formatIn(language));

test("a detail is one line of words: no JSON, no empty values, and units", () => {
  expect(said({ gpus: ["n1-gpu0", "n1-gpu1"], from: ["default"] })).toBe("GPUs n1-gpu0, n1-gpu1 · from default");
  expect(said({ attempt: 1, message: "", waited_seconds: 75.4, model: null })).toBe("attempt 1 · waited 1m 15s");
  expect(said({ nodes: { n1: ["n1-gpu0"], n2: [] } })).toBe("nodes n1: n1-gpu0; n2");
  expect(said({ priority: { was: 5, is: 3 }, retry_count: 2 })).toBe("priority 5 → 3 · retry count 2");
  expect(said({ queue: "default", waited_seconds: 5 }, "zh")).toBe("队列 default · 等待 5 秒");
});

test("changes are separated from the other fields", () => {
  const detail = { priority: { was: 5, is: 3 }, changed: ["note"], note: "new" };
  expect(differences(detail)).toEqual([{ field: "priority", before: 5, after: 3 }]);
  expect(facts(detail)).toEqual([{ field: "note", value: "new", isChanged: true }]);
  expect(shown("priority", undefined, format)).toBe("–");
  expect(shown("drain_seconds", 3600, format)).toBe("1h");
  expect(shown("until", Date.parse("2026-11-20T10:00:00") / 1000, format)).toBe("20 Nov 2026, 10:00:00");
});
