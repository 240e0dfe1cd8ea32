/** The user's use of a type of volume, beside the requested size. */
import type { Schema } from "@/api/client";
import type { VolumeType } from "@/pages/storage/volumes/volume";
import { texts } from "@/pages/storage/volumes/texts";
import { HeldBar } from "@/parts/HeldBar";
import { volumeTypes } from "@/texts/common";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

export function QuotaLine({ type, held, asked }: { type: VolumeType; held: Schema<"HeldView">; asked: number }) {
  const t = useTexts(texts);
  const typeLabel = useTexts(volumeTypes);
  const { bytes } = useFormat();
  if (held.limit === null) return <>{t("quotaNone", { held: bytes(held.held) })}</>;
  const said = t("quotaLine", { held: bytes(held.held), asked: bytes(asked), limit: bytes(held.limit) });
  return <HeldBar label={t("quotaOf", { type: typeLabel(type) })} held={held} asked={asked} said={said} />;
}
