import { expect, test } from "vitest";

import { newerThan } from "@/pages/people/audit/useEvents";

test("an event that the list already shows is not counted as new", () => {
  expect(newerThan([{ id: 7 }, { id: 3 }], [7])).toBe(0);
  expect(newerThan([{ id: 7 }, { id: 3 }], [7, 8, 9])).toBe(2);
});

test("every event is newer than an empty list", () => {
  expect(newerThan([], [1, 2])).toBe(2);
});
