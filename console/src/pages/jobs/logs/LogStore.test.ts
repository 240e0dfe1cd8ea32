import { describe, expect, it } from "vitest";

import { LogStore, patternOf } from "@/pages/jobs/logs/LogStore";

const atOnce = (notify: () => void) => notify();

describe("LogStore", () => {
  it("puts lines together that come in parts", () => {
    const store = new LogStore(atOnce);
    store.append("one\ntw");
    expect([store.count, store.line(1)]).toEqual([2, "tw"]);
    store.append("o\r\n\nfour");
    expect([0, 1, 2, 3, 4].map((number) => store.line(number))).toEqual(["one", "two", "", "four", undefined]);
    expect(store.text(1, 4)).toBe("two\n\nfour");
  });

  it("notifies its listeners once for many changes", () => {
    const waiting: (() => void)[] = [];
    const store = new LogStore((notify) => waiting.push(notify));
    let notified = 0;
    store.subscribe(() => (notified += 1));
    for (let number = 0; number < 100; number += 1) store.append(`${number}\n`);
    expect([waiting.length, notified]).toEqual([1, 0]);
    waiting.pop()?.();
    expect([notified, store.version()]).toEqual([1, 1]);
  });

  it("holds a million lines and finds any of them quickly", async () => {
    const store = new LogStore(atOnce);
    for (let block = 0; block < 1_000; block += 1) {
      store.append(
        Array.from({ length: 1_000 }, (_, line) => `line ${block * 1_000 + line + 1} of the log\n`).join(""),
      );
    }
    expect(store.count).toBe(1_000_000);
    expect(store.line(499_999)).toBe("line 500000 of the log");
    const found = await store.find(patternOf("LINE 500000 "), new AbortController().signal);
    expect(found).toEqual({ lines: [499_999], isCut: false });
    const many = await store.find(patternOf("of the log"), new AbortController().signal);
    expect([many.lines.length, many.isCut]).toEqual([10_000, true]);
  });

  it("searches what is seen, not what colours it, and counts a line once", async () => {
    const store = new LogStore(atOnce);
    store.append("a\n\x1b[31mer\x1b[0mror error\nb\nlast error");
    expect((await store.find(patternOf("error"), new AbortController().signal)).lines).toEqual([1, 3]);
    expect((await store.find(patternOf("e.ror"), new AbortController().signal)).lines).toEqual([]);
  });

  it("lets go of the oldest when there is too much, and keeps the numbers", () => {
    const store = new LogStore(atOnce, 600_000);
    for (let number = 0; number < 10; number += 1) store.append(`${number}${"x".repeat(200_000)}\n`);
    expect(store.count).toBe(10);
    expect(store.first).toBeGreaterThan(5);
    expect(store.line(0)).toBeUndefined();
    expect(store.line(9)?.[0]).toBe("9");
  });

  it("does not grow with a progress bar that never ends its line", () => {
    const store = new LogStore(atOnce);
    for (let number = 0; number < 20_000; number += 1) store.append(`\r${number} of 20000`);
    expect(store.longest).toBeLessThan(80_000);
    expect(store.line(0)).toContain("19999 of 20000");
  });
});
