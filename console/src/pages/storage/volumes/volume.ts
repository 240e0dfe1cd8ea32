/** Volumes for the viewer: the name in jobs, the used part, and the permission to change. */
import type { Schema } from "@/api/client";
import { useIsOperator, useMay, useMe } from "@/app/session";
import { texts } from "@/pages/storage/volumes/texts";
import { useTexts } from "@/texts/texts";

export type Volume = Schema<"VolumeView">;
export type VolumeType = Volume["type"];

/** Without local volumes: they exist as long as an attempt, and only jobs ask for them. */
export const KEPT_TYPES = ["block", "filesystem", "object"] as const;
export type KeptType = (typeof KEPT_TYPES)[number];

/** How its viewer names it in a job: with its owner's name if it belongs to another user. */
export function refOf({ name, owner, mine }: Pick<Volume, "name" | "owner" | "mine">): string {
  return mine ? name : `${owner}/${name}`;
}

/** The used part of its size, 0 … 1; null if it was not measured or has no size. */
export function usedPart({ used_bytes, size_bytes }: Pick<Volume, "used_bytes" | "size_bytes">): number | null {
  if (used_bytes === null || used_bytes === undefined || size_bytes === 0) return null;
  return used_bytes / size_bytes;
}

/** Whether a text can be the folder of an object volume within its bucket. */
export function isPrefix(text: string): boolean {
  return !/(^\/)|(^|\/)\.\.(\/|$)/.test(text.trim());
}

/** Why the viewer may not create volumes; undefined if they may. */
export function useWhyNotCreate(): string | undefined {
  const t = useTexts(texts);
  const me = useMe();
  return useMay("volumes") ? undefined : t("notAllowed", { group: me.permission_group });
}

/** Why the viewer may not change a volume; undefined if they may. */
export function useWhyNot(): (volume: Pick<Volume, "owner" | "mine">) => string | undefined {
  const t = useTexts(texts);
  const isOperator = useIsOperator();
  return ({ owner, mine }) => (mine || isOperator ? undefined : t("notYours", { owner }));
}
