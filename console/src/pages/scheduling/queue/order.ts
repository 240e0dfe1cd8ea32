/** The rules of a line, as far as the console must know them before it asks the server. */
import type { Schema } from "@/api/client";

export type Line = Schema<"LineView">;
export type Place = Schema<"OrderedJobView">;

/** A place with a key that stays the job's while it moves; jobs that one may not see are counted per user. */
export interface Row {
  readonly key: string;
  readonly place: Place;
}

export interface Wish {
  readonly id: string;
  readonly target: string;
  readonly where: "before" | "after";
}

export function lineKey(line: Line): string {
  return `${line.model}/${line.line}`;
}

export function rowsOf(places: readonly Place[]): readonly Row[] {
  const hidden = new Map<string, number>();
  return places.map((place) => {
    if (place.id !== null) return { key: place.id, place };
    const count = (hidden.get(place.user) ?? 0) + 1;
    hidden.set(place.user, count);
    return { key: `${place.user}#${count}`, place };
  });
}

/** Whether two places are of one user's sequence, in which their owner may change them. */
export function areOfOneSequence(one: Place, other: Place): boolean {
  return one.id !== null && other.id !== null && one.user === other.user && !one.pinned && !other.pinned;
}

/** The indexes of the places among which a job can be moved, its own among them. */
export function slotsOf(places: readonly Place[], place: Place): readonly number[] {
  return places.flatMap((other, index) => (areOfOneSequence(place, other) ? [index] : []));
}

/** The change of order that results when one job is dropped on another one's place. */
export function wishOf(places: readonly Place[], id: string, target: string): Wish {
  const from = places.findIndex((place) => place.id === id);
  const to = places.findIndex((place) => place.id === target);
  return { id, target, where: from < to ? "after" : "before" };
}

/** The wish that takes another one back: the job goes to its former neighbour. */
export function undoOf(places: readonly Place[], { id }: Wish): Wish | undefined {
  const moved = places.find((place) => place.id === id);
  if (moved === undefined) return undefined;
  const own = slotsOf(places, moved).flatMap((slot) => places[slot]?.id ?? []);
  const at = own.indexOf(id);
  const [before, after] = [own[at - 1], own[at + 1]];
  if (before !== undefined) return { id, target: before, where: "after" };
  return after === undefined ? undefined : { id, target: after, where: "before" };
}

/** The line as it will be: the jobs of one user change places among themselves, other jobs stay. */
export function withWish(places: readonly Place[], wish: Wish | undefined): readonly Place[] {
  const moved = places.find((place) => place.id === wish?.id);
  if (wish === undefined || moved === undefined) return places;
  const slots = slotsOf(places, moved);
  const own = slots.flatMap((slot) => places[slot] ?? []);
  const from = own.findIndex((place) => place.id === wish.id);
  const target = own.findIndex((place) => place.id === wish.target);
  if (from < 0 || target < 0) return places;
  const to = wish.where === "before" ? (from < target ? target - 1 : target) : from < target ? target : target + 1;
  const order = own.toSpliced(from, 1).toSpliced(to, 0, ...own.slice(from, from + 1));
  return places.map((place, index) => {
    const taken = order[slots.indexOf(index)];
    // The planned start belongs to the place; the server sends the new one.
    return taken === undefined || taken === place
      ? place
      : { ...taken, position: place.position, planned_start: null, estimated_start: null };
  });
}

/** Whether a job is shown while one cluster is selected: it waits for that cluster, or for any. */
export function mayRunOn(place: Place, cluster: string): boolean {
  return cluster === "" || place.cluster === null || place.cluster === cluster;
}
