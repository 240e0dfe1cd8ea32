/** Checks the size of a volume while it is typed. */
import type { Schema } from "@/api/client";
import type { texts } from "@/pages/storage/volumes/texts";
import { parseSize } from "@/texts/sizes";
import type { Say } from "@/texts/texts";

interface Bounds {
  readonly t: Say<typeof texts>;
  readonly bytes: (value: number) => string;
  /** The use and the limit of the viewer for this type. */
  readonly held: Schema<"HeldView"> | undefined;
  /** The size of the volume now; 0 for a new one. */
  readonly before: number;
}

/** Why a volume cannot have this size; null if it can. */
export function sizeError(text: string, { t, bytes, held, before }: Bounds): string | null {
  const size = parseSize(text);
  if (size === undefined) return t("sizeBad");
  if (size === 0) return t("sizeZero");
  if (before > 0 && size <= before) return t("sizeSmaller", { size: bytes(before) });
  const limit = held?.limit ?? null;
  if (held === undefined || limit === null) return null;
  const left = Math.max(0, limit - held.held);
  if (size - before <= left) return null;
  return t("overQuota", { asked: bytes(size - before), left: bytes(left), limit: bytes(limit) });
}
