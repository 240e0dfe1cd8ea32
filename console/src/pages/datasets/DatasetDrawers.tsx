/** The drawers for actions on a dataset, opened by the address, such as `commit:d-3`. */
import { api, sent } from "@/api/client";
import { CommitDrawer } from "@/pages/datasets/CommitDrawer";
import { DatasetForm } from "@/pages/datasets/DatasetForm";
import type { Dataset } from "@/pages/datasets/dataset";
import { texts } from "@/pages/datasets/texts";
import { SharesDrawer } from "@/parts/SharesDrawer";
import { useTexts } from "@/texts/texts";

export function DatasetDrawers({
  open,
  datasets,
  onClose,
}: {
  open: string;
  datasets: readonly Dataset[];
  onClose: () => void;
}) {
  const t = useTexts(texts);
  const [what = "", id = ""] = open.split(":");
  const dataset = datasets.find((one) => one.id === id);
  if (dataset === undefined) return null;
  const { name, owner } = dataset;
  if (what === "commit") return <CommitDrawer dataset={dataset} onClose={onClose} />;
  if (what === "edit") return <DatasetForm dataset={dataset} opened onClose={onClose} />;
  if (what !== "share") return null;
  return (
    <SharesDrawer
      title={t("shareTitle", { name })}
      hint={t("shareHint", { ref: `${owner}/${name}` })}
      shares={dataset.shares}
      save={(shares) =>
        sent(api.PUT("/datasets/{dataset}/shares", { params: { path: { dataset: id } }, body: { shares } }))
      }
      touches={["/datasets"]}
      done={t("shared", { name })}
      onClose={onClose}
    />
  );
}
