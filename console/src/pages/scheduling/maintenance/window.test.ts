import { describe, expect, it } from "vitest";

import {
  createOf,
  draftOf,
  editOf,
  lengthOf,
  occurrencesOf,
  type MaintenanceWindow,
} from "@/pages/scheduling/maintenance/window";
import { stripOf } from "@/pages/scheduling/reservations/calendar";

const WINDOW: MaintenanceWindow = {
  name: "fans",
  nodes: ["n1"],
  since: new Date(2026, 2, 2, 2, 0, 30).toISOString(),
  until: new Date(2026, 2, 2, 6, 0, 30).toISOString(),
  every_days: 7,
  drain_before_seconds: 5400,
  drains_at: new Date(2026, 2, 2, 0, 30, 30).toISOString(),
  state: "upcoming",
  nodes_left: [],
  note: "",
  created_by: "root",
  created_at: new Date(2026, 2, 1).toISOString(),
};

describe("a draft", () => {
  it("says what the form has", () => {
    const draft = {
      ...draftOf(undefined, ["n1", "n2"], Date.now()),
      name: "fans",
      every_days: "7",
      drain_before: "90m",
    };
    expect(lengthOf(draft)).toBe(4 * 3_600_000);
    expect(createOf(draft)).toMatchObject({ name: "fans", nodes: ["n1", "n2"], every_days: 7, drain_before: 5400 });
    expect(createOf({ ...draft, every_days: "" }).every_days).toBeNull();
  });
  it("leaves times alone that were not changed", () => {
    const draft = draftOf(WINDOW, [], Date.now());
    expect(draft.drain_before).toBe("1h30m");
    expect(editOf({ ...draft, note: "new fans" }, WINDOW)).toEqual({
      nodes: ["n1"],
      every_days: 7,
      drain_before: 5400,
      note: "new fans",
    });
  });
});

describe("occurrencesOf", () => {
  it("repeats a window at the same time of the day, also where the clock is changed", () => {
    const strip = stripOf(new Date(2026, 2, 16), 28);
    const found = occurrencesOf([WINDOW], strip);
    expect(found.map((one) => new Date(one.since).getDate())).toEqual([16, 23, 30, 6]);
    expect(new Set(found.map((one) => new Date(one.since).getHours()))).toEqual(new Set([2]));
    expect(occurrencesOf([{ ...WINDOW, every_days: null }], strip)).toEqual([]);
  });
});
