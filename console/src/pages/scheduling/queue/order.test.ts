import { describe, expect, it } from "vitest";

import {
  areOfOneSequence,
  mayRunOn,
  rowsOf,
  slotsOf,
  undoOf,
  wishOf,
  withWish,
  type Place,
} from "@/pages/scheduling/queue/order";

function place(position: number, user: string, id: string | null = `j-${position}`, more: Partial<Place> = {}): Place {
  return {
    position,
    user,
    id,
    name: id,
    pinned: false,
    planned_start: "2026-01-01T00:00:00Z",
    estimated_start: null,
    cluster: null,
    ...more,
  } as Place;
}

const LINE = [place(1, "ann"), place(2, "bob"), place(3, "ann"), place(4, "ann")];
const ids = (places: readonly Place[]) => places.map((one) => one.id);

describe("a waiting line", () => {
  it("takes a move back to the former neighbour", () => {
    expect(undoOf(LINE, { id: "j-4", target: "j-1", where: "before" })).toEqual({
      id: "j-4",
      target: "j-3",
      where: "after",
    });
    expect(undoOf(LINE, { id: "j-1", target: "j-4", where: "after" })).toEqual({
      id: "j-1",
      target: "j-3",
      where: "before",
    });
    expect(undoOf(LINE, { id: "j-2", target: "j-4", where: "after" })).toBeUndefined();
  });
  it("has keys that stay with the jobs, and counts hidden jobs per user", () => {
    const hidden = [place(1, "ann"), place(2, "bob", null), place(3, "bob", null), place(4, "eve", null)];
    expect(rowsOf(hidden).map((row) => row.key)).toEqual(["j-1", "bob#1", "bob#2", "eve#1"]);
  });
  it("lets a job move among the jobs of its user only", () => {
    expect(slotsOf(LINE, place(3, "ann"))).toEqual([0, 2, 3]);
    expect(areOfOneSequence(place(1, "ann"), place(2, "bob"))).toBe(false);
    expect(areOfOneSequence(place(1, "ann"), place(3, "ann", "j-3", { pinned: true }))).toBe(false);
  });
  it("reads the direction of a move from where the job is dropped", () => {
    expect(wishOf(LINE, "j-1", "j-3")).toEqual({ id: "j-1", target: "j-3", where: "after" });
    expect(wishOf(LINE, "j-4", "j-1")).toEqual({ id: "j-4", target: "j-1", where: "before" });
  });
  it("shows a move before the server has answered, without start times of the old order", () => {
    const moved = withWish(LINE, { id: "j-4", target: "j-1", where: "before" });
    expect(ids(moved)).toEqual(["j-4", "j-2", "j-1", "j-3"]);
    expect(moved.map((one) => one.position)).toEqual([1, 2, 3, 4]);
    expect(moved.map((one) => one.planned_start !== null)).toEqual([false, true, false, false]);
    expect(ids(withWish(LINE, { id: "j-1", target: "j-4", where: "after" }))).toEqual(["j-3", "j-2", "j-4", "j-1"]);
  });
  it("stays as it is without a wish, or with one about a job that is gone", () => {
    expect(withWish(LINE, undefined)).toBe(LINE);
    expect(withWish(LINE, { id: "j-9", target: "j-1", where: "before" })).toBe(LINE);
    expect(withWish(LINE, { id: "j-1", target: "j-2", where: "after" })).toBe(LINE);
  });
  it("shows under one cluster the jobs that may run there", () => {
    expect(mayRunOn(place(1, "ann"), "hpc")).toBe(true);
    expect(mayRunOn(place(1, "ann", "j-1", { cluster: "hpc" }), "hpc")).toBe(true);
    expect(mayRunOn(place(1, "ann", "j-1", { cluster: "local" }), "hpc")).toBe(false);
    expect(mayRunOn(place(1, "ann", "j-1", { cluster: "local" }), "")).toBe(true);
  });
});
