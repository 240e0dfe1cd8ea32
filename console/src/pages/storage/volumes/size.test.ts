import { describe, expect, it } from "vitest";

import { sizeError } from "@/pages/storage/volumes/size";
import { texts } from "@/pages/storage/volumes/texts";
import { isPrefix } from "@/pages/storage/volumes/volume";
import { say } from "@/texts/texts";

const GIB = 2 ** 30;
const NEW = { t: say(texts, "en"), bytes: (value: number) => `${value / GIB} GiB`, held: undefined, before: 0 };

describe("the size of a volume", () => {
  it.each(["10GiB", "1TiB", " 5g "])("can be %j", (text) => expect(sizeError(text, NEW)).toBeNull());
  it.each(["", "much", "-1GiB", "0"])("cannot be %j", (text) => expect(sizeError(text, NEW)).not.toBeNull());
  it("only grows", () => {
    const bounds = { ...NEW, before: 10 * GIB };
    expect(sizeError("10GiB", bounds)).toContain("10 GiB");
    expect(sizeError("5GiB", bounds)).toContain("10 GiB");
    expect(sizeError("11GiB", bounds)).toBeNull();
  });
  it("counts against the quota with what is added", () => {
    const held = { held: 90 * GIB, asked: 0, limit: 100 * GIB };
    expect(sizeError("10GiB", { ...NEW, held })).toBeNull();
    expect(sizeError("11GiB", { ...NEW, held })).toContain("11 GiB");
    expect(sizeError("30GiB", { ...NEW, held, before: 20 * GIB })).toBeNull();
    expect(sizeError("9TiB", { ...NEW, held: { held: 0, asked: 0, limit: null } })).toBeNull();
  });
});

describe("the folder of an object volume", () => {
  it.each(["", "runs", "runs/2024/", "a..b"])("can be %j", (text) => expect(isPrefix(text)).toBe(true));
  it.each(["/runs", "..", "runs/../x", "runs/.."])("cannot be %j", (text) => expect(isPrefix(text)).toBe(false));
});
