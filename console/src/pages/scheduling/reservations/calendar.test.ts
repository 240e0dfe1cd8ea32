import { describe, expect, it } from "vitest";

import {
  barsOf,
  dayOf,
  dayText,
  levelsOf,
  moved,
  stripOf,
  type Reservation,
} from "@/pages/scheduling/reservations/calendar";

const STRIP = stripOf(new Date(2026, 0, 7), 7);
const DAY = (STRIP.to - STRIP.from) / 7;

/** A reservation; `from` and `until` are days of the strip. */
function reservation(name: string, from: number, until: number | null, gpus = 1): Reservation {
  const at = (day: number) => new Date(STRIP.from + day * DAY).toISOString();
  return {
    name,
    pool: "default",
    model: "A10",
    gpus: [],
    nodes: {},
    gpu_count: gpus,
    users: ["ann"],
    groups: [],
    since: at(from),
    until: until === null ? null : at(until),
    lends: true,
    note: "",
    state: "upcoming",
    in_force: true,
    used_by_owners: 0,
    lent: 0,
    created_by: "operator",
    created_at: at(from),
  };
}

describe("the strip of days", () => {
  it("begins with Monday, whichever day is asked for", () => {
    for (let day = 5; day < 12; day += 1)
      expect(dayText(stripOf(new Date(2026, 0, day, 13), 7).from)).toBe("2026-01-05");
  });
  it("moves by whole days, also over the end of a year", () => {
    expect(moved(STRIP, 7)).toBe("2026-01-12");
    expect(moved(STRIP, -7)).toBe("2025-12-29");
  });
  it("takes today for an address that makes no sense", () => {
    const today = new Date(2026, 5, 1);
    expect(dayOf("nonsense", today)).toBe(today);
    expect(dayOf("2026-99-01", today)).toBe(today);
    expect(dayText(dayOf("2026-02-03", today).getTime())).toBe("2026-02-03");
  });
});

describe("bars", () => {
  it("share a lane one after the other, and take another beside each other", () => {
    const bars = barsOf([reservation("c", 2, 4), reservation("a", 0, 2), reservation("b", 1, 3)], STRIP);
    expect(bars.map((bar) => [bar.reservation.name, bar.lane])).toEqual([
      ["a", 0],
      ["b", 1],
      ["c", 0],
    ]);
  });
  it("are cut where the strip ends, and leave out what is elsewhere", () => {
    const bars = barsOf(
      [reservation("stands", -3, null), reservation("over", -3, -1), reservation("far", 8, 9)],
      STRIP,
    );
    expect(bars).toHaveLength(1);
    expect(bars[0]).toMatchObject({ left: 0, width: 1, isCutLeft: true, isCutRight: true });
  });
});

describe("how many GPUs are set aside", () => {
  it("is the sum at each time, from the first day to the last", () => {
    const levels = levelsOf([reservation("a", 0, 2, 4), reservation("b", 1, 3, 2)], STRIP);
    expect(levels.map((level) => level.gpus)).toEqual([4, 6, 2, 0]);
    expect(levels[0]?.from).toBe(0);
    expect(levels.at(-1)?.to).toBe(1);
  });
  it("is nothing without reservations", () => {
    expect(levelsOf([], STRIP)).toEqual([{ from: 0, to: 1, gpus: 0 }]);
  });
});
