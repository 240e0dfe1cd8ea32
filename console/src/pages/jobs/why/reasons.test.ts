import { describe, expect, it } from "vitest";

import { sentenceOf, type Reason } from "@/pages/jobs/why/reasons";
import { formatIn } from "@/texts/format";

function textOf(reason: Partial<Reason>, language: "en" | "zh" = "zh"): string {
  return sentenceOf(
    { rule: "", detail: "the server's words", numbers: {}, jobs: [], ...reason },
    language,
    formatIn(language),
  );
}

describe("why a job waits, in words", () => {
  it("takes the server's sentence in English", () => {
    expect(textOf({ rule: "resources", detail: "needs 8 GPUs", numbers: { asked_gpus: 8 } }, "en")).toBe(
      "Needs 8 GPUs",
    );
  });

  it("is written in Chinese from the numbers", () => {
    const numbers = { asked_nodes: 2, asked_gpus: 8, free_gpus: 3, most_free_on_a_node: 1, jobs_holding: 4 };
    expect(textOf({ rule: "resources", numbers })).toBe(
      "需要 2 个节点、每个 8 个 GPU；目前空闲 3 个，单个节点最多空闲 1 个。",
    );
    expect(textOf({ rule: "gpus-per-user", numbers: { asked: 2, held: 6, limit: 7 } })).toBe(
      "所有者最多使用 7 个 GPU：已占用 6 个，此作业还要 2 个。",
    );
  });

  it("shows durations and sizes with units", () => {
    const givenBack = { seconds_left: 90, times: 3, said: "waited: PartitionDown" };
    expect(textOf({ rule: "given-back", numbers: givenBack })).toContain("waited: PartitionDown");
    expect(textOf({ rule: "back-off", numbers: { seconds_left: 90, faults: 1 } })).toContain("1 分 30 秒");
    const memory = { resource: "memory_bytes", asked: 2 ** 31, held: 0, limit: 2 ** 30 };
    expect(textOf({ rule: "quota", numbers: memory })).toContain("内存配额：上限 1 GiB，已占用 0 B，申请 2 GiB。");
  });

  it("says that a job which is larger than its limit never starts", () => {
    const never = "在此上限下，该作业无法启动。";
    expect(textOf({ rule: "queue-gpus", numbers: { asked: 2, held: 0, limit: 1 } })).toContain(never);
    expect(textOf({ rule: "queue-gpus", numbers: { asked: 2, held: 4, limit: 4 } })).not.toContain(never);
  });

  it("says until when it waits for others, where that is known", () => {
    expect(textOf({ rule: "dependency", numbers: { jobs: 2 } })).toBe("它排在 2 个尚未完成的作业之后。");
    expect(textOf({ rule: "dependency", numbers: { jobs: 2, seconds_left: 60 } })).toContain("最迟 1 分 后结束");
  });

  it("falls back to the server's words for unknown rules and missing numbers", () => {
    expect(textOf({ rule: "something-new" })).toBe("The server's words");
    expect(textOf({ rule: "quota", numbers: { asked: 1 } })).toBe("The server's words");
  });
});
