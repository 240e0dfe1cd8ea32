import { Text } from "@mantine/core";

import { usedPart, type Volume } from "@/pages/storage/volumes/volume";
import { texts } from "@/pages/storage/volumes/texts";
import { Meter } from "@/parts/Meter";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

/** Nearly full is worth seeing before it holds jobs up. */
const WARN_AT = 0.9;

/** How much of its size a volume uses; what has no size shows only what there is. */
export function UsedBar({ volume, width }: { volume: Volume; width?: number }) {
  const t = useTexts(texts);
  const format = useFormat();
  if (volume.used_bytes === null || volume.used_bytes === undefined)
    return (
      <Text size="sm" c="dimmed" style={{ whiteSpace: "nowrap" }}>
        {volume.type === "object" ? "–" : t("notMeasured")}
      </Text>
    );
  const part = usedPart(volume);
  if (part === null) return <span className="num">{format.bytes(volume.used_bytes)}</span>;
  const text = t("usedOf", { used: format.bytes(volume.used_bytes), size: format.bytes(volume.size_bytes) });
  return <Meter value={part} label={`${volume.name}: ${text}`} text={text} warnAt={WARN_AT} width={width ?? 72} />;
}
