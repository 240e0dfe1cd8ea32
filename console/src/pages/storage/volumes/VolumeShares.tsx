import { api, sent } from "@/api/client";
import type { Volume } from "@/pages/storage/volumes/volume";
import { texts } from "@/pages/storage/volumes/texts";
import { SharesDrawer } from "@/parts/SharesDrawer";
import { useTexts } from "@/texts/texts";

export function VolumeShares({ volume, onClose }: { volume: Volume; onClose: () => void }) {
  const t = useTexts(texts);
  const { id, name, owner } = volume;
  return (
    <SharesDrawer
      title={t("shareTitle", { name })}
      hint={t("shareHint", { ref: `${owner}/${name}` })}
      shares={volume.shares}
      save={(shares) =>
        sent(api.PUT("/volumes/{volume}/shares", { params: { path: { volume: id } }, body: { shares } }))
      }
      touches={["/volumes"]}
      done={t("shared", { name })}
      onClose={onClose}
    />
  );
}
