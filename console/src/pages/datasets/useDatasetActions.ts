/** The actions on a dataset, and the reasons why one is disabled. */
import { useRouter } from "@tanstack/react-router";
import { GitCommitHorizontal, Pencil, Play, Trash2, UsersRound } from "lucide-react";

import { api, sent } from "@/api/client";
import { useAction } from "@/api/useAction";
import { refOf, useWhyNotOwn, useWhyNotWrite, type Dataset } from "@/pages/datasets/dataset";
import { texts } from "@/pages/datasets/texts";
import { useConfirm } from "@/parts/confirm";
import type { RowAction } from "@/parts/RowMenu";
import { useTexts } from "@/texts/texts";

export function useDatasetActions({
  open,
  onDeleted,
}: {
  open: (what: string) => void;
  onDeleted?: () => void;
}): (dataset: Dataset) => readonly RowAction[] {
  const t = useTexts(texts);
  const router = useRouter();
  const whyNotOwn = useWhyNotOwn();
  const whyNotWrite = useWhyNotWrite();
  const remove = useRemove(onDeleted);
  return (dataset) => {
    const refusal = whyNotOwn(dataset);
    return [
      {
        label: t("commit"),
        icon: GitCommitHorizontal,
        refusal: whyNotWrite(dataset),
        onClick: () => open(`commit:${dataset.id}`),
      },
      {
        label: t("newJob"),
        icon: Play,
        refusal: dataset.versions === 0 ? t("newJobEmpty") : undefined,
        onClick: () => router.history.push(`/jobs/new?dataset=${encodeURIComponent(refOf(dataset))}`),
      },
      { label: t("edit"), icon: Pencil, refusal, onClick: () => open(`edit:${dataset.id}`) },
      { label: t("share"), icon: UsersRound, refusal, onClick: () => open(`share:${dataset.id}`) },
      { label: t("deleteIt"), icon: Trash2, danger: true, refusal, onClick: () => remove(dataset) },
    ];
  };
}

function useRemove(onDeleted?: () => void): (dataset: Dataset) => void {
  const t = useTexts(texts);
  const confirm = useConfirm();
  const remove = useAction<Dataset, unknown>({
    run: ({ id }) => sent(api.DELETE("/datasets/{dataset}", { params: { path: { dataset: id } } })),
    touches: ["/datasets", "/dataset-targets"],
    done: (_, { name }) => t("deleted", { name }),
    optimistic: (cache, { id }) => cache.dropItems<Dataset>("/datasets", (one) => one.id === id),
    onDone: () => onDeleted?.(),
  });
  return (dataset) =>
    confirm({
      title: t("deleteTitle", { name: dataset.name }),
      text: t("deleteText", { n: dataset.versions }),
      action: t("deleteAction", { name: dataset.name }),
      onConfirm: () => remove.mutate(dataset),
    });
}
