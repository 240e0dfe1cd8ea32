/** What is wrong with the size of a volume, as one types it. */
import type { Schema } from "@/api/client";
import type { texts } from "@/pages/storage/volumes/texts";
import type { Wrong } from "@/parts/useFields";
import { parseSize } from "@/texts/sizes";
import type { Say } from "@/texts/texts";

interface Bounds {
  readonly t: Say<typeof texts>;
  readonly bytes: (value: number) => string;
  /** What the viewer holds of this type already. */
  readonly held: Schema<"HeldView"> | undefined;
  /** What it has now; 0 for a new one. */
  readonly before: number;
}

export function checkSize(text: string, { t, bytes, held, before }: Bounds): Wrong | undefined {
  if (text.trim() === "") return { text: t("needed"), isMissing: true };
  const size = parseSize(text);
  if (size === undefined) return { text: t("sizeBad") };
  if (size === 0) return { text: t("sizeZero") };
  if (before > 0 && size <= before)
    return { text: t("sizeSmaller", { size: bytes(before) }), isMissing: size === before };
  const limit = held?.limit ?? null;
  if (held === undefined || limit === null) return undefined;
  const left = Math.max(0, limit - held.held);
  if (size - before <= left) return undefined;
  return { text: t("overQuota", { asked: bytes(size - before), left: bytes(left), limit: bytes(limit) }) };
}
