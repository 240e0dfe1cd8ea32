import { Button, Select } from "@mantine/core";
import { Plus } from "lucide-react";

import { useAll } from "@/api/useAll";
import { useFilters } from "@/app/useFilters";
import { KINDS, type Kind } from "@/pages/fleet/packages/draft";
import { PackageForm } from "@/pages/fleet/packages/PackageForm";
import { PackageTable } from "@/pages/fleet/packages/PackageTable";
import { texts } from "@/pages/fleet/packages/texts";
import { PageHeader } from "@/parts/PageHeader";
import { ProblemNote } from "@/parts/ProblemNote";
import { kinds as kindTexts } from "@/texts/common";
import { navigation } from "@/texts/navigation";
import { useTexts } from "@/texts/texts";

/** `open` is the package that is being edited, `new` says that one is being made, `kind` for which free ones are counted. */
const FILTERS = { open: "", new: "", kind: "training" };

export default function PackagesPage() {
  const t = useTexts(texts);
  const n = useTexts(navigation);
  const k = useTexts(kindTexts);
  const [filters, setFilters] = useFilters(FILTERS);
  const kind: Kind = KINDS.find((one) => one === filters.kind) ?? "training";
  const packages = useAll("/packages");
  const offers = useAll("/packages", { kind });
  const flavors = useAll("/flavors");
  const nodes = useAll("/nodes");
  const open = packages.data?.find((one) => one.name === filters.open);
  const close = () => setFilters({ open: "", new: "" });
  const failure = packages.data === undefined ? packages.error : null;
  const form = { flavors: flavors.data ?? [], nodes: nodes.data ?? [], onClose: close };
  return (
    <>
      <PageHeader title={n("packages")} detail={t("detail")}>
        <Select
          aria-label={t("freeFor")}
          allowDeselect={false}
          w={150}
          size="xs"
          data={KINDS.map((one) => ({ value: one, label: k(one) }))}
          value={kind}
          onChange={(next) => setFilters({ kind: next ?? "training" })}
        />
        <Button leftSection={<Plus size={15} />} onClick={() => setFilters({ new: "yes", open: "" })}>
          {t("create")}
        </Button>
      </PageHeader>
      {failure !== null ? (
        <ProblemNote error={failure} onRetry={() => void packages.refetch()} />
      ) : (
        <PackageTable
          packages={packages.data}
          offers={offers.data}
          kind={kind}
          flavors={flavors.data}
          nodes={nodes.data}
          onEdit={(name) => setFilters({ open: name, new: "" })}
          onCreate={() => setFilters({ new: "yes" })}
        />
      )}
      {filters.new !== "" && packages.data !== undefined && (
        <PackageForm one={undefined} taken={packages.data.map((one) => one.name)} {...form} />
      )}
      {open !== undefined && <PackageForm key={open.name} one={open} taken={[]} {...form} />}
    </>
  );
}
