import { Select } from "@mantine/core";
import { Package as PackageIcon } from "lucide-react";

import { JOB_KINDS } from "@/api/enumerations";
import { useAll } from "@/api/useAll";
import { useFilters } from "@/app/useFilters";
import { usePackageColumns } from "@/pages/fleet/packages/columns";
import { type Kind } from "@/pages/fleet/packages/draft";
import { PackageForm } from "@/pages/fleet/packages/PackageForm";
import { useDeletePackages } from "@/pages/fleet/packages/usePackageAdmin";
import { texts } from "@/pages/fleet/packages/texts";
import { CatalogPage } from "@/parts/CatalogPage";
import { kinds as kindTexts } from "@/texts/common";
import { navigation } from "@/texts/navigation";
import { useTexts } from "@/texts/texts";

/** The kind of job for which free packages are counted. */
const FILTERS = { kind: "training" };

export default function PackagesPage() {
  const t = useTexts(texts);
  const n = useTexts(navigation);
  const k = useTexts(kindTexts);
  const [filters, setFilters] = useFilters(FILTERS);
  const kind: Kind = JOB_KINDS.find((one) => one === filters.kind) ?? "training";
  const { data: offers } = useAll("/packages", { kind });
  const { data: flavors } = useAll("/flavors");
  const { data: nodes } = useAll("/nodes");
  const kinds = (
    <Select
      aria-label={t("freeFor")}
      allowDeselect={false}
      w={150}
      size="xs"
      data={JOB_KINDS.map((one) => ({ value: one, label: k(one) }))}
      value={kind}
      onChange={(next) => setFilters({ kind: next ?? "training" })}
    />
  );
  return (
    <CatalogPage
      title={n("packages")}
      detail={t("detail")}
      createLabel={t("create")}
      tools={kinds}
      query={useAll("/packages")}
      columns={usePackageColumns({ offers, kind, flavors, nodes })}
      empty={{ icon: PackageIcon, title: t("empty"), hint: t("emptyHint") }}
      menuLabel={(name) => t("menuOf", { name })}
      onDelete={useDeletePackages()}
      canSelect
      form={({ row, taken, onClose }) => (
        <PackageForm
          key={row?.name}
          one={row}
          taken={taken}
          flavors={flavors ?? []}
          nodes={nodes ?? []}
          onClose={onClose}
        />
      )}
    />
  );
}
