/** The use of a quota, in numbers and as text: running jobs hold it, waiting jobs ask for it. */
import type { Schema } from "@/api/client";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

type Held = Schema<"HeldView">;

/** Waiting jobs count against a quota, too. */
export function counted({ held, asked }: Held): number {
  return held + asked;
}

export function isFull(use: Held): boolean {
  return use.limit !== null && counted(use) >= use.limit;
}

/** A part of 0 … 1, over a limit of nothing too; null without a limit. */
export function part(use: Held): number | null {
  if (use.limit === null) return null;
  return use.limit === 0 ? (counted(use) > 0 ? 1 : 0) : counted(use) / use.limit;
}

/** "3 / 8", or "3 + 2 waiting / 8". */
export function useQuotaText(): (use: Held, shown: (value: number) => string) => string {
  const c = useTexts(common);
  return ({ held, asked, limit }, shown) => {
    const most = limit === null ? c("unlimited") : shown(limit);
    return asked === 0
      ? `${shown(held)} / ${most}`
      : c("heldAndAsked", { held: shown(held), asked: shown(asked), limit: most });
  };
}
