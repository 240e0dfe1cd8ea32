/** A reservation in a few words. */
import { useMemo } from "react";

import type { Reservation } from "@/pages/scheduling/reservations/calendar";
import { texts } from "@/pages/scheduling/reservations/texts";
import { states } from "@/texts/common";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

export interface Spoken {
  readonly gpus: (reservation: Reservation) => string;
  readonly who: (reservation: Reservation) => string;
  readonly when: (reservation: Reservation) => string;
  readonly whole: (reservation: Reservation) => string;
  /** The text that a bar has no room for. */
  readonly rest: (reservation: Reservation) => string;
}

export function useSpoken(): Spoken {
  const t = useTexts(texts);
  const ts = useTexts(states);
  const format = useFormat();
  return useMemo(() => {
    const gpus = (one: Reservation) => t("gpuCount", { n: one.gpu_count, model: one.model });
    const who = (one: Reservation) => [...one.groups, ...one.users].join(", ");
    const when = (one: Reservation) =>
      one.until === null
        ? t("fromOn", { from: format.dayTime(one.since) })
        : t("fromUntil", { from: format.dayTime(one.since), until: format.dayTime(one.until) });
    const whole = (one: Reservation) =>
      t("bar", { name: one.name, gpus: gpus(one), pool: one.pool, when: when(one), state: ts(one.state) });
    const rest = (one: Reservation) => t("barRest", { pool: one.pool, when: when(one), state: ts(one.state) });
    return { gpus, who, when, whole, rest };
  }, [t, ts, format]);
}
