/** Named states of a list (filters, order, columns), which this browser remembers for each user. */
import { useCallback, useState } from "react";

import { useMe } from "@/app/session";
import { remember, remembered } from "@/app/storage";
import type { Filters } from "@/app/useFilters";

export interface SavedView {
  readonly name: string;
  /** The query part of the address. */
  readonly filters: Filters;
}

const MOST_LETTERS = 40;

export interface SavedViews {
  readonly saved: readonly SavedView[];
  readonly save: (view: SavedView) => void;
  readonly rename: (before: string, name: string) => void;
  readonly remove: (name: string) => void;
}

/** Whether the name can be used: not empty, short, and not taken. */
export function isFreeName(saved: readonly SavedView[], name: string): boolean {
  return name.trim() !== "" && name.length <= MOST_LETTERS && saved.every((view) => view.name !== name.trim());
}

/** The views of one list, such as `jobs` or `/nodes`. */
export function useSavedViews(list: string): SavedViews {
  // Several people may use one browser.
  const place = `${list}.views.${useMe().name}`;
  const [saved, setSaved] = useState<readonly SavedView[]>(() => remembered(place, areViews) ?? []);
  const change = useCallback(
    (update: (before: readonly SavedView[]) => readonly SavedView[]) =>
      setSaved((before) => {
        const after = update(before);
        remember(place, after);
        return after;
      }),
    [place],
  );
  return {
    saved,
    save: (view) => change((before) => [...before, { ...view, name: view.name.trim() }]),
    rename: (old, name) =>
      change((before) => before.map((view) => (view.name === old ? { ...view, name: name.trim() } : view))),
    remove: (name) => change((before) => before.filter((view) => view.name !== name)),
  };
}

function areViews(value: unknown): value is SavedView[] {
  return Array.isArray(value) && value.every(isView);
}

function isView(value: unknown): value is SavedView {
  if (typeof value !== "object" || value === null || !("name" in value) || !("filters" in value)) return false;
  return (
    typeof value.name === "string" &&
    typeof value.filters === "object" &&
    value.filters !== null &&
    Object.values(value.filters).every(isStringOrStrings)
  );
}

function isStringOrStrings(value: unknown): boolean {
  return typeof value === "string" || (Array.isArray(value) && value.every((one) => typeof one === "string"));
}
