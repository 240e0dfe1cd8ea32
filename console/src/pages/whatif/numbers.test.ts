import { describe, expect, it } from "vitest";

import { cdfOf, changeText, percentText, shownAs } from "@/pages/whatif/numbers";
import { formatIn } from "@/texts/format";

const format = formatIn("en");

describe("numbers of a comparison", () => {
  it("are shown by their unit", () => {
    expect(shownAs("seconds", 7_260, format)).toBe("2h 1m");
    expect(shownAs("fraction", 0.815, format)).toBe("81.5%");
    expect(shownAs("gpu_hours", 12, format)).toBe("12 h");
    expect(shownAs("jobs", null, format)).toBe("–");
  });
  it("differ with their sign", () => {
    expect(changeText("seconds", -120, format)).toBe("−2m");
    expect(changeText("jobs", 3, format)).toBe("+3");
    expect(changeText("jobs", 0, format)).toBe("0");
    expect(percentText(-36.2)).toBe("−36%");
    expect(percentText(3.14)).toBe("+3.1%");
    expect(percentText(null)).toBe("");
  });
});

describe("how long jobs waited", () => {
  it("begins with none of them, and has no zero seconds", () => {
    const waiting_cdf = [
      [0, 0.25],
      [90, 1],
    ];
    expect(cdfOf({ waiting_cdf })).toEqual([
      [1, 0],
      [1, 0.25],
      [90, 1],
    ]);
  });
});
