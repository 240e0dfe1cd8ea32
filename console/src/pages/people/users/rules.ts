/** Why an action on a user is not possible, shown before the request. */
import type { Schema } from "@/api/client";
import type { texts } from "@/pages/people/users/texts";
import type { Say } from "@/texts/texts";

export type User = Schema<"UserView">;

export interface Refusals {
  /** Disabling, and making a scientist of an operator. */
  readonly weaken: string | undefined;
  readonly delete: string | undefined;
  readonly reset: string | undefined;
}

export function refusalsFor(t: Say<typeof texts>, user: User, everybody: readonly User[], me: string): Refusals {
  const own = user.name === me ? t("ownAccount") : undefined;
  const last = isLastOperator(user, everybody) ? t("lastOperator") : undefined;
  const busy = user.active_jobs > 0 ? t("hasJobs", { n: user.active_jobs }) : undefined;
  return { weaken: last ?? own, delete: last ?? own ?? busy, reset: user.name === me ? t("ownPassword") : undefined };
}

export function isLastOperator(user: User, everybody: readonly User[]): boolean {
  const acting = everybody.filter((one) => one.role === "operator" && !one.disabled);
  return acting.length === 1 && acting[0]?.name === user.name;
}
