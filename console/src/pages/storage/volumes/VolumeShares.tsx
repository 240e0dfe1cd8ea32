import { api, sent } from "@/api/client";
import type { Volume } from "@/pages/storage/volumes/volume";
import { words } from "@/pages/storage/volumes/words";
import { SharesDrawer } from "@/parts/SharesDrawer";
import { useWords } from "@/words/words";

export function VolumeShares({ volume, onClose }: { volume: Volume; onClose: () => void }) {
  const t = useWords(words);
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
