/** A reservation as it is typed, and as the API takes it. */
import type { Schema } from "@/api/client";
import type { Reservation } from "@/pages/scheduling/reservations/calendar";
import { localText, momentText } from "@/texts/localTime";

export interface Draft {
  name: string;
  pool: string;
  which: "count" | "named";
  gpus: string;
  model: string;
  gpu_ids: string[];
  users: string[];
  groups: string[];
  span: "window" | "standing";
  /** By the viewer's clock, as the fields show it. */
  since: string;
  until: string;
  lends: boolean;
  note: string;
}

export function draftOf(reservation: Reservation | undefined): Draft {
  return {
    name: reservation?.name ?? "",
    pool: reservation?.pool ?? "default",
    which: reservation === undefined ? "count" : "named",
    gpus: reservation === undefined ? "1" : String(reservation.gpu_count),
    model: "",
    gpu_ids: [...(reservation?.gpus ?? [])],
    users: [...(reservation?.users ?? [])],
    groups: [...(reservation?.groups ?? [])],
    span: reservation?.until === null ? "standing" : "window",
    since: localText(reservation?.since ?? ""),
    until: localText(reservation?.until ?? ""),
    lends: reservation?.lends ?? true,
    note: reservation?.note ?? "",
  };
}

/** The fields that a new reservation and a change share. */
function saidOf(draft: Draft) {
  return {
    ...(draft.which === "named" ? { gpu_ids: draft.gpu_ids } : { gpus: Number(draft.gpus) }),
    users: draft.users,
    groups: draft.groups,
    ...(draft.since === "" ? {} : { since: momentText(draft.since) }),
    until: draft.span === "standing" ? null : momentText(draft.until),
    lends: draft.lends,
    note: draft.note.trim(),
  };
}

export function createOf(draft: Draft): Schema<"ReservationCreate"> {
  const model = draft.which === "count" && draft.model !== "" ? { model: draft.model } : {};
  return { name: draft.name, pool: draft.pool, ...saidOf(draft), ...model };
}

export function editOf(draft: Draft): Partial<Schema<"ReservationEdit">> {
  return saidOf(draft);
}

/** Seconds from its beginning (now, if none is given) to its end, in whole minutes; undefined while that makes no sense. */
export function lengthOf(draft: Draft, now: number): number | undefined {
  const until = Date.parse(momentText(draft.until));
  const since = draft.since === "" ? now : Date.parse(momentText(draft.since));
  const seconds = 60 * Math.ceil((until - since) / 60_000);
  return draft.span === "window" && seconds > 0 ? seconds : undefined;
}
