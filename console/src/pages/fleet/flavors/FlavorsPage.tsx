import { Button } from "@mantine/core";
import { Plus } from "lucide-react";

import { useAll } from "@/api/useAll";
import { useFilters } from "@/app/useFilters";
import { FlavorForm } from "@/pages/fleet/flavors/FlavorForm";
import { FlavorTable } from "@/pages/fleet/flavors/FlavorTable";
import { texts } from "@/pages/fleet/flavors/texts";
import { PageHeader } from "@/parts/PageHeader";
import { ProblemNote } from "@/parts/ProblemNote";
import { navigation } from "@/texts/navigation";
import { useTexts } from "@/texts/texts";

/** `open` is the flavor that is being edited; `new` says that one is being made. */
const FILTERS = { open: "", new: "" };

export default function FlavorsPage() {
  const t = useTexts(texts);
  const n = useTexts(navigation);
  const [filters, setFilters] = useFilters(FILTERS);
  const flavors = useAll("/flavors");
  const nodes = useAll("/nodes");
  const open = flavors.data?.find((flavor) => flavor.name === filters.open);
  const close = () => setFilters({ open: "", new: "" });
  return (
    <>
      <PageHeader title={n("flavors")} detail={t("detail")}>
        <Button leftSection={<Plus size={15} />} onClick={() => setFilters({ new: "yes", open: "" })}>
          {t("create")}
        </Button>
      </PageHeader>
      {flavors.error !== null && flavors.data === undefined ? (
        <ProblemNote error={flavors.error} onRetry={() => void flavors.refetch()} />
      ) : (
        <FlavorTable
          flavors={flavors.data}
          onEdit={(name) => setFilters({ open: name, new: "" })}
          onCreate={() => setFilters({ new: "yes" })}
        />
      )}
      {filters.new !== "" && flavors.data !== undefined && (
        <FlavorForm
          flavor={undefined}
          taken={flavors.data.map((flavor) => flavor.name)}
          nodes={nodes.data ?? []}
          onClose={close}
        />
      )}
      {open !== undefined && (
        <FlavorForm key={open.name} flavor={open} taken={[]} nodes={nodes.data ?? []} onClose={close} />
      )}
    </>
  );
}
