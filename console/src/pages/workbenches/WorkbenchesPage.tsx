import { SegmentedControl, SimpleGrid, Skeleton, Stack, Text } from "@mantine/core";
import { NotebookPen, Plus } from "lucide-react";
import type { ReactNode } from "react";

import { useIsOperator, useMay, useMe } from "@/app/session";
import { useFilters } from "@/app/useFilters";
import { AppList } from "@/pages/workbenches/apps/AppList";
import { BenchCard } from "@/pages/workbenches/BenchCard";
import { CreateDrawer } from "@/pages/workbenches/CreateDrawer";
import { useWorkbenches } from "@/pages/workbenches/useWorkbenches";
import { texts } from "@/pages/workbenches/texts";
import { CopyText } from "@/parts/CopyText";
import { EmptyState } from "@/parts/EmptyState";
import { ExplainedButton } from "@/parts/ExplainedButton";
import { PageHeader } from "@/parts/PageHeader";
import { ProblemNote } from "@/parts/ProblemNote";
import { navigation } from "@/texts/navigation";
import { useTexts } from "@/texts/texts";

const FILTERS = { whose: "", open: "" };

export default function WorkbenchesPage() {
  const t = useTexts(texts);
  const n = useTexts(navigation);
  const me = useMe();
  const isOperator = useIsOperator();
  const [filters, setFilters] = useFilters(FILTERS);
  const benches = useWorkbenches();
  const own = benches.data?.filter((bench) => bench.user === me.name);
  // Operators see everybody's; they too mostly look for their own.
  const whose = !isOperator ? "mine" : filters.whose || "all";
  const shown = whose === "mine" ? own : benches.data;
  return (
    <>
      <PageHeader title={n("workbenches")} detail={t("about")}>
        {isOperator && (
          <SegmentedControl
            size="xs"
            aria-label={t("whose")}
            value={whose}
            onChange={(next) => setFilters({ whose: next === "all" ? "" : next })}
            data={[
              { value: "all", label: t("everybody") },
              { value: "mine", label: t("mine") },
            ]}
          />
        )}
        <CreateButton onClick={() => setFilters({ open: "new" })} />
      </PageHeader>
      {benches.error !== null && <ProblemNote error={benches.error} onRetry={() => void benches.refetch()} />}
      {shown === undefined && benches.error === null && (
        <Cards>
          {[0, 1, 2].map((key) => (
            <Skeleton key={key} h={220} radius="md" />
          ))}
        </Cards>
      )}
      {shown?.length === 0 && <Newcomer isOthers={whose === "all"} onCreate={() => setFilters({ open: "new" })} />}
      {shown !== undefined && shown.length > 0 && (
        <Cards>
          {shown.map((bench) => (
            <BenchCard key={bench.id} bench={bench} />
          ))}
        </Cards>
      )}
      <AppList />
      <CreateDrawer opened={filters.open === "new"} onClose={() => setFilters({ open: "" })} />
    </>
  );
}

function Cards({ children }: { children: ReactNode }) {
  return (
    <SimpleGrid cols={{ base: 1, sm: 2, xl: 3 }} spacing="md">
      {children}
    </SimpleGrid>
  );
}

function CreateButton({ onClick }: { onClick: () => void }) {
  const t = useTexts(texts);
  const me = useMe();
  const may = useMay("workbench");
  return (
    <ExplainedButton
      leftSection={<Plus size={15} />}
      why={may ? undefined : t("notAllowed", { group: me.permission_group })}
      onClick={onClick}
    >
      {t("create")}
    </ExplainedButton>
  );
}

function Newcomer({ isOthers, onCreate }: { isOthers: boolean; onCreate: () => void }) {
  const t = useTexts(texts);
  return (
    <EmptyState icon={NotebookPen} title={isOthers ? t("emptyOthers") : t("emptyTitle")} hint={t("emptyHint")}>
      <Stack align="center" gap="sm">
        <CreateButton onClick={onCreate} />
        <Text size="xs" c="dimmed">
          {t("emptyCli")}
        </Text>
        <CopyText text="corral workbench create bench --gpus 1" />
      </Stack>
    </EmptyState>
  );
}
