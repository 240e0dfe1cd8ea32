import { describe, expect, it } from "vitest";

import { createOf, draftOf, lengthOf } from "@/pages/scheduling/reservations/draft";
import { momentText } from "@/texts/localTime";

const DRAFT = { ...draftOf(undefined), name: "class", gpus: "4", groups: ["students"] };

describe("a reservation as the API takes it", () => {
  it("begins now where no beginning is given, and ends when it says", () => {
    const body = createOf({ ...DRAFT, until: "2026-01-03T10:00" });
    expect(body).toMatchObject({
      name: "class",
      gpus: 4,
      groups: ["students"],
      until: momentText("2026-01-03T10:00"),
    });
    expect(body).not.toHaveProperty("since");
    expect(body).not.toHaveProperty("gpu_ids");
    expect(body).not.toHaveProperty("model");
  });
  it("has no end where it stands, whatever was typed before", () => {
    expect(createOf({ ...DRAFT, span: "standing", until: "2026-01-03T10:00" }).until).toBeNull();
  });
  it("names GPUs or counts them, never both", () => {
    const body = createOf({ ...DRAFT, which: "named", gpu_ids: ["n1-gpu0"], model: "A10", until: "2026-01-03T10:00" });
    expect(body.gpu_ids).toEqual(["n1-gpu0"]);
    expect(body).not.toHaveProperty("gpus");
    expect(body).not.toHaveProperty("model");
  });
});

describe("how long it lasts", () => {
  const at = Date.parse(momentText("2026-01-03T08:00"));
  it("is counted from its beginning, or from now", () => {
    expect(lengthOf({ ...DRAFT, since: "2026-01-03T09:00", until: "2026-01-03T10:00" }, at)).toBe(3_600);
    expect(lengthOf({ ...DRAFT, until: "2026-01-03T10:00" }, at)).toBe(7_200);
  });
  it("is not known without an end, or with one that comes first", () => {
    expect(lengthOf(DRAFT, at)).toBeUndefined();
    expect(lengthOf({ ...DRAFT, until: "2026-01-03T07:00" }, at)).toBeUndefined();
  });
});
