import { describe, expect, it } from "vitest";

import { parseLine, plainText, withoutSequences } from "@/pages/jobs/logs/ansi";
import { symbols } from "@/texts/symbols";

const ESC = "\x1b";

describe("parseLine", () => {
  it("leaves plain text as it is", () => {
    expect(parseLine("epoch 1\tloss 0.5")).toEqual([{ text: "epoch 1\tloss 0.5", style: {} }]);
    expect(parseLine("")).toEqual([]);
  });

  it("knows the sixteen colours, dark and bright, in front and behind", () => {
    expect(parseLine(`${ESC}[31mred${ESC}[92;44mgreen${ESC}[0mplain`)).toEqual([
      { text: "red", style: { fg: 1 } },
      { text: "green", style: { fg: 10, bg: 4 } },
      { text: "plain", style: {} },
    ]);
  });

  it("knows 256 colours: the palette, the cube and the greys", () => {
    expect(parseLine(`${ESC}[38;5;9ma`)[0]?.style.fg).toBe(9);
    expect(parseLine(`${ESC}[38;5;196ma`)[0]?.style.fg).toBe("rgb(255 0 0)");
    expect(parseLine(`${ESC}[48;5;244ma`)[0]?.style.bg).toBe("rgb(128 128 128)");
  });

  it("knows true colours, with semicolons and with colons", () => {
    expect(parseLine(`${ESC}[38;2;10;20;300;1ma`)[0]?.style).toEqual({ fg: "rgb(10 20 255)", bold: true });
    expect(parseLine(`${ESC}[48:2::1:2:3ma`)[0]?.style.bg).toBe("rgb(1 2 3)");
  });

  it("switches bold, dim, underline and inverse on and off", () => {
    const [first, second] = parseLine(`${ESC}[1;4;7mx${ESC}[22;24my`);
    expect(first?.style).toMatchObject({ bold: true, underline: true, inverse: true });
    expect(second?.style.bold).toBeUndefined();
    expect(second?.style.underline).toBeUndefined();
    expect(second?.style.inverse).toBe(true);
  });

  it("takes an empty code for a reset", () => {
    expect(parseLine(`${ESC}[31ma${ESC}[mb`)[1]).toEqual({ text: "b", style: {} });
  });

  it("shows the last state of a progress bar", () => {
    expect(plainText("10%\r 50%\r100%")).toBe("100%");
    expect(plainText("long old text\rnew")).toBe("newg old text");
    expect(plainText(`long old text\r${ESC}[Knew`)).toBe("new");
    expect(plainText("ab\bc")).toBe("ac");
    expect(plainText(`abc${ESC}[2Dx${ESC}[5Gy`)).toBe("axc y");
  });

  it("colours what overwrites", () => {
    expect(parseLine(`aaaa\r${ESC}[32mbb`)).toEqual([
      { text: "bb", style: { fg: 2 } },
      { text: "aa", style: {} },
    ]);
  });

  it("drops what only moves the cursor, and shows titles, links and the like", () => {
    expect(plainText(`a${ESC}[2Jb${ESC}[?25lc`)).toBe("abc");
    expect(plainText(`c${ESC}]0;title\x07d`)).toBe("c␛]0;title␇d");
    expect(plainText(`${ESC}]8;;http://x${ESC}\\link${ESC}(B`)).toBe("␛]8;;http://x␛\\link␛(B");
  });

  it("shows what would act unseen", () => {
    expect(plainText("a\x07\x00b\x7f")).toBe("a␇␀b␡");
    expect(plainText("\u202egpj.exe\u2066")).toBe("\\u202egpj.exe\\u2066");
    expect(plainText("\x9b31mred")).toBe("\\u009b31mred");
    expect(symbols("plain 你好")).toBe("plain 你好");
    expect(parseLine(`${ESC}[31m\u202er`)).toEqual([{ text: "\\u202er", style: { fg: 1 } }]);
  });

  it("survives broken sequences", () => {
    expect(plainText(`a${ESC}`)).toBe("a␛");
    expect(plainText(`a${ESC}[`)).toBe("a␛[");
    expect(plainText(`a${ESC}[38;5`)).toBe("a␛[38;5");
    expect(plainText(`a${ESC}]0;no end`)).toBe("a␛]0;no end");
    expect(plainText(`${ESC}[38;5mx${ESC}[38;2;1my${ESC}[999mz`)).toBe("xyz");
    expect(plainText(`a${ESC}[31\x00mb`)).toContain("b");
  });

  it("takes sequences out of a whole text and keeps its lines", () => {
    expect(withoutSequences(`${ESC}[1ma${ESC}[0m\nb${ESC}[31m c\n`)).toBe("a\nb c\n");
  });
});
