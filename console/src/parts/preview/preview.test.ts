import { describe, expect, it } from "vitest";

import { imageOf, imageType, textOf } from "@/parts/preview/content";
import { MOST_COLUMNS, MOST_ROWS, sheetOf } from "@/parts/preview/sheet";

const bytes = (text: string) => new TextEncoder().encode(text) as Uint8Array<ArrayBuffer>;
const whole = (data: Uint8Array<ArrayBuffer>) => textOf({ bytes: data, size: data.length });

describe("the type of an image", () => {
  it.each([
    ["image/png", [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0]],
    ["image/jpeg", [0xff, 0xd8, 0xff, 0xe0]],
    ["image/gif", [...bytes("GIF89a")]],
    ["image/webp", [...bytes("RIFF"), 1, 2, 3, 4, ...bytes("WEBPVP8 ")]],
  ])("is %s by its first bytes", (type, begin) => expect(imageType(new Uint8Array(begin))).toBe(type));

  it.each([
    "<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>",
    "<!doctype html><script>",
    "RIFF....WAVE",
    "",
  ])("is none of %j, which is never drawn", (text) => expect(imageType(bytes(text))).toBeUndefined());
});

const u16 = (n: number) => [n >> 8, n & 0xff];
const le16 = (n: number) => [n & 0xff, n >> 8];
const png = (w: number, h: number) => [
  ...bytes("\x89PNG\r\n\x1a\n").slice(1),
  0,
  0,
  0,
  13,
  ...bytes("IHDR"),
  0,
  0,
  ...u16(w),
  0,
  0,
  ...u16(h),
];
const jpeg = (w: number, h: number) => [
  0xff,
  0xd8,
  0xff,
  0xe0,
  0,
  4,
  1,
  2,
  0xff,
  0xff,
  0xc2,
  0,
  11,
  8,
  ...u16(h),
  ...u16(w),
];
const gif = (w: number, h: number) => [
  ...bytes("GIF89a"),
  1,
  0,
  1,
  0,
  0x80,
  0,
  0,
  0,
  0,
  0,
  9,
  9,
  9,
  0x21,
  0xf9,
  1,
  0,
  0,
  0x2c,
  0,
  0,
  0,
  0,
  ...le16(w),
  ...le16(h),
];
const webp = (kind: string, rest: number[]) => [
  ...bytes("RIFF"),
  0,
  0,
  0,
  0,
  ...bytes(`WEBP${kind}`),
  0,
  0,
  0,
  0,
  ...rest,
];

describe("a small file with very many pixels", () => {
  it.each([
    ["image/png", png],
    ["image/jpeg", jpeg],
    ["image/gif", gif],
  ])("is not drawn: %s", (type, made) => {
    const of = (data: number[]) => imageOf(type, { bytes: new Uint8Array(data), size: 99 }).kind;
    expect([of(made(4000, 3000)), of(made(60_000, 60_000))]).toEqual(["image", "tooManyPixels"]);
    expect(of(made(4000, 3000).slice(0, 12))).toBe("other");
  });

  it.each([
    [webp("VP8X", [0, 0, 0, 0, 0x9f, 0x0f, 0, 0xb7, 0x0b, 0]), "image"],
    [webp("VP8X", [0, 0, 0, 0, 0xff, 0xff, 0, 0xff, 0xff, 0]), "tooManyPixels"],
    [webp("VP8L", [0x2f, 0xff, 0xff, 0xff, 0x0f]), "tooManyPixels"],
    [webp("VP8 ", [0, 0, 0, 0, 0, 0, 0xff, 0x3f, 0xff, 0x3f]), "tooManyPixels"],
  ])("is not drawn: WebP %#", (data, kind) => {
    expect(imageOf("image/webp", { bytes: new Uint8Array(data), size: 99 }).kind).toBe(kind);
  });
});

describe("the text of a file", () => {
  it("is its UTF-8, also of a page", () => {
    expect(whole(bytes("<script>1</script> 中文"))).toMatchObject({
      kind: "text",
      text: "<script>1</script> 中文",
      isCut: false,
    });
  });

  it("may end within a character where it was cut", () => {
    const cut = bytes("中文").slice(0, 4);
    expect(textOf({ bytes: cut, size: 6 })).toMatchObject({ kind: "text", text: "中", isCut: true });
    expect(whole(cut)).toMatchObject({ kind: "other" });
  });

  it("shows characters that change its direction", () => {
    expect(whole(bytes("a\u202eb"))).toMatchObject({ text: "a\\u202eb" });
  });

  it("is none with bytes that no text has", () => {
    expect(whole(new Uint8Array([65, 0, 66]))).toMatchObject({ kind: "other", size: 3 });
    expect(whole(new Uint8Array([0xc3, 0x28]))).toMatchObject({ kind: "other" });
  });
});

describe("a sheet", () => {
  it("has quoted cells with separators, quotes and lines", () => {
    const text = '\uFEFFname,note\r\n"a, b","say ""hi""\nagain"\r\n\r\nc,\r\n';
    expect(sheetOf(text, false)).toEqual({
      head: ["name", "note"],
      rows: [
        ["a, b", 'say "hi"\nagain'],
        ["c", ""],
      ],
      isCut: false,
    });
  });

  it.each([
    ["a;b;c\n1;2,5;3", ["1", "2,5", "3"]],
    ["a\tb\n1\t2", ["1", "2"]],
  ])("finds its separator: %j", (text, row) => expect(sheetOf(text, false).rows).toEqual([row]));

  it("leaves out a last row that may be incomplete", () => {
    expect(sheetOf("a,b\n1,2\n3,", true)).toMatchObject({ rows: [["1", "2"]], isCut: true });
  });

  it("ends after the most rows and columns that are drawn", () => {
    const long = sheetOf("n\n".repeat(MOST_ROWS + 1), false);
    expect([long.rows.length, long.isCut]).toEqual([MOST_ROWS, false]);
    expect(sheetOf("n\n".repeat(MOST_ROWS + 5), true)).toMatchObject({ isCut: true, rows: { length: MOST_ROWS } });
    const wide = sheetOf(",".repeat(MOST_COLUMNS), false);
    expect([wide.head.length, wide.isCut]).toEqual([MOST_COLUMNS, true]);
  });

  it("may be empty", () => expect(sheetOf("", false)).toEqual({ head: [], rows: [], isCut: false }));
});
