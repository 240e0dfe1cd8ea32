import { SlidersHorizontal } from "lucide-react";

import { useAll } from "@/api/useAll";
import { useFlavorColumns } from "@/pages/fleet/flavors/columns";
import { FlavorForm } from "@/pages/fleet/flavors/FlavorForm";
import { useDeleteFlavors } from "@/pages/fleet/flavors/useFlavorAdmin";
import { texts } from "@/pages/fleet/flavors/texts";
import { CatalogPage } from "@/parts/CatalogPage";
import { navigation } from "@/texts/navigation";
import { useTexts } from "@/texts/texts";

export default function FlavorsPage() {
  const t = useTexts(texts);
  const n = useTexts(navigation);
  const nodes = useAll("/nodes");
  return (
    <CatalogPage
      title={n("flavors")}
      detail={t("detail")}
      createLabel={t("create")}
      query={useAll("/flavors")}
      columns={useFlavorColumns()}
      empty={{ icon: SlidersHorizontal, title: t("empty"), hint: t("emptyHint") }}
      menuLabel={(name) => t("menuOf", { name })}
      onDelete={useDeleteFlavors()}
      refusal={({ packages }) =>
        packages.length === 0 ? undefined : t("cannotUsed", { n: packages.length, names: packages.join(", ") })
      }
      canSelect
      batchRefusal={(names) => t("cannotSome", { names })}
      form={({ row, taken, onClose }) => (
        <FlavorForm key={row?.name} flavor={row} taken={taken} nodes={nodes.data ?? []} onClose={onClose} />
      )}
    />
  );
}
