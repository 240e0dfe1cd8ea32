/** The actions on a volume, and the reasons why one is disabled. */
import { useRouter } from "@tanstack/react-router";
import { Maximize2, PencilLine, Play, Trash2, UsersRound } from "lucide-react";

import { api, sent } from "@/api/client";
import { useAction } from "@/api/useAction";
import { refOf, useWhyNot, type Volume } from "@/pages/storage/volumes/volume";
import { texts } from "@/pages/storage/volumes/texts";
import { useConfirm } from "@/parts/confirm";
import type { RowAction } from "@/parts/RowMenu";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

const MOST_NAMES = 5;

export function useVolumeActions({
  open,
  onDeleted,
}: {
  open: (what: string) => void;
  onDeleted?: () => void;
}): (volume: Volume) => readonly RowAction[] {
  const t = useTexts(texts);
  const router = useRouter();
  const whyNot = useWhyNot();
  const remove = useRemove(onDeleted);
  return (volume) => {
    const busy = volume.state === "deleting" ? t("isDeleting") : undefined;
    const refusal = whyNot(volume) ?? busy;
    return [
      {
        label: t("newJob"),
        icon: Play,
        refusal: busy,
        onClick: () => router.history.push(`/jobs/new?volume=${encodeURIComponent(refOf(volume))}`),
      },
      {
        label: t("resize"),
        icon: Maximize2,
        refusal: refusal ?? (volume.type === "object" ? t("resizeObject") : undefined),
        onClick: () => open(`resize:${volume.id}`),
      },
      { label: t("describe"), icon: PencilLine, refusal, onClick: () => open(`describe:${volume.id}`) },
      { label: t("share"), icon: UsersRound, refusal, onClick: () => open(`share:${volume.id}`) },
      {
        label: t("deleteIt"),
        icon: Trash2,
        danger: true,
        refusal: refusal ?? (volume.jobs.length > 0 ? t("inUse", { jobs: namesOf(volume) }) : undefined),
        onClick: () => remove(volume),
      },
    ];
  };
}

function namesOf({ jobs }: Volume): string {
  const names = jobs.slice(0, MOST_NAMES).map((job) => `${job.name} (${job.id})`);
  return jobs.length > MOST_NAMES ? `${names.join(", ")} …` : names.join(", ");
}

function useRemove(onDeleted?: () => void): (volume: Volume) => void {
  const t = useTexts(texts);
  const format = useFormat();
  const confirm = useConfirm();
  const remove = useAction<Volume, unknown>({
    run: ({ id }) => sent(api.DELETE("/volumes/{volume}", { params: { path: { volume: id } } })),
    touches: ["/volumes", "/me/quota", "/quotas"],
    done: (_, { name }) => t("deleted", { name }),
    optimistic: (cache, { id }) =>
      cache.changeItems<Volume>(
        "/volumes",
        (one) => one.id === id,
        (one) => ({ ...one, state: "deleting" }),
      ),
    onDone: () => onDeleted?.(),
  });
  return (volume) => {
    const { used_bytes: used, shares, name } = volume;
    const lost =
      volume.type === "object"
        ? t("deleteObject")
        : used === null || used === undefined
          ? t("deleteTextUnknown")
          : t("deleteText", { used: format.bytes(used) });
    confirm({
      title: t("deleteTitle", { name }),
      text: shares.length === 0 ? lost : `${lost} ${t("deleteShared", { n: shares.length })}`,
      action: t("deleteAction", { name }),
      onConfirm: () => remove.mutate(volume),
    });
  };
}
