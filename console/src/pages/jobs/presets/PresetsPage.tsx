import { Button, SimpleGrid, Skeleton } from "@mantine/core";
import { BadgeCheck, Plus } from "lucide-react";

import { useAll } from "@/api/useAll";
import { useIsOperator } from "@/app/session";
import { useFilters } from "@/app/useFilters";
import { AddDrawer } from "@/pages/jobs/presets/AddDrawer";
import { PresetCard } from "@/pages/jobs/presets/PresetCard";
import { RunDrawer } from "@/pages/jobs/presets/RunDrawer";
import { TemplateDrawer } from "@/pages/jobs/presets/TemplateDrawer";
import { texts } from "@/pages/jobs/presets/texts";
import { EmptyState } from "@/parts/EmptyState";
import { PageHeader } from "@/parts/PageHeader";
import { ProblemNote } from "@/parts/ProblemNote";
import { navigation } from "@/texts/navigation";
import { useTexts } from "@/texts/texts";

const FILTERS = { open: "", run: "", add: "" };

export default function PresetsPage() {
  const t = useTexts(texts);
  const n = useTexts(navigation);
  const isOperator = useIsOperator();
  const presets = useAll("/presets");
  const [filters, setFilters] = useFilters(FILTERS);
  const toRun = presets.data?.find((preset) => preset.name === filters.run);
  return (
    <>
      <PageHeader title={n("presets")} detail={t("about")}>
        {isOperator && (
          <Button leftSection={<Plus size={15} />} onClick={() => setFilters({ add: "yes" })}>
            {t("add")}
          </Button>
        )}
      </PageHeader>
      {presets.error !== null && <ProblemNote error={presets.error} onRetry={() => void presets.refetch()} />}
      {presets.data?.length === 0 && <EmptyState icon={BadgeCheck} title={t("emptyTitle")} hint={t("addHint")} />}
      <SimpleGrid cols={{ base: 1, md: 2, xl: 3 }} spacing="md">
        {presets.data === undefined &&
          presets.error === null &&
          [0, 1].map((key) => <Skeleton key={key} h={190} radius="md" />)}
        {presets.data?.map((preset) => (
          <PresetCard
            key={preset.name}
            preset={preset}
            onOpen={() => setFilters({ open: preset.name })}
            onRun={() => setFilters({ run: preset.name })}
          />
        ))}
      </SimpleGrid>
      <TemplateDrawer name={filters.open} onClose={() => setFilters({ open: "" })} />
      {toRun !== undefined && <RunDrawer key={toRun.name} preset={toRun} onClose={() => setFilters({ run: "" })} />}
      {isOperator && filters.add !== "" && (
        <AddDrawer presets={presets.data ?? []} onClose={() => setFilters({ add: "" })} />
      )}
    </>
  );
}
