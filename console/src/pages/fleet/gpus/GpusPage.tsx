import { Code, Group, MultiSelect, TextInput } from "@mantine/core";
import { CircuitBoard, Search } from "lucide-react";
import { useMemo, useState } from "react";

import { GPU_HEALTH } from "@/api/enumerations";
import { useAll } from "@/api/useAll";
import { useCluster } from "@/app/cluster";
import { useFilters } from "@/app/useFilters";
import { GpuTable } from "@/pages/fleet/gpus/GpuTable";
import { matching, type Gpu, type GpuChoice } from "@/pages/fleet/gpus/rules";
import { useGpuActions } from "@/pages/fleet/gpus/useGpuActions";
import { texts } from "@/pages/fleet/gpus/texts";
import { BatchBar } from "@/parts/BatchBar";
import { EmptyState } from "@/parts/EmptyState";
import FilterSelect from "@/parts/FilterSelect";
import { PageHeader } from "@/parts/PageHeader";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { RowMenu } from "@/parts/RowMenu";
import { states } from "@/texts/common";
import { navigation } from "@/texts/navigation";
import { useTexts } from "@/texts/texts";

const FILTERS = { q: "", health: [] as readonly string[], model: "", pool: "", node: "", use: "" };

export default function GpusPage() {
  const page = useTexts(navigation);
  const t = useTexts(texts);
  const gpus = useAll("/gpus");
  const cluster = useCluster();
  const here = useMemo(
    () => gpus.data?.filter((gpu) => cluster === "" || gpu.cluster === cluster),
    [gpus.data, cluster],
  );
  const free = here?.filter((gpu) => gpu.free).length ?? 0;
  return (
    <>
      <PageHeader title={page("gpus")} detail={here !== undefined && t("summary", { n: here.length, free })} />
      {gpus.error !== null && <ProblemNote error={gpus.error} onRetry={() => void gpus.refetch()} />}
      {(gpus.data !== undefined || gpus.error === null) && <Gpus gpus={here} />}
    </>
  );
}

function Gpus({ gpus }: { gpus: readonly Gpu[] | undefined }) {
  const page = useTexts(navigation);
  const t = useTexts(texts);
  const [filters, setFilters] = useFilters(FILTERS);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const { actionsFor, parts } = useGpuActions();
  const shown = useMemo(() => (gpus === undefined ? undefined : matching(gpus, filters)), [gpus, filters]);
  const chosen = shown?.filter((gpu) => selected.has(gpu.id)) ?? [];
  if (gpus?.length === 0) {
    return (
      <EmptyState icon={CircuitBoard} title={t("none")} hint={t("noneHint")}>
        <Code>corral up --virtual-gpus 8xA100-80G</Code>
      </EmptyState>
    );
  }
  return (
    <>
      <FilterBar gpus={gpus ?? []} filters={filters} setFilters={setFilters} />
      {parts}
      <BatchBar count={chosen.length} actions={actionsFor(chosen)} onClear={() => setSelected(new Set())} />
      <Panel p={0}>
        <GpuTable
          label={page("gpus")}
          gpus={shown}
          selected={selected}
          onSelect={setSelected}
          actions={(gpu) => <RowMenu label={t("actionsOf", { gpu: gpu.id })} actions={actionsFor([gpu])} />}
        />
      </Panel>
    </>
  );
}

function FilterBar({
  gpus,
  filters,
  setFilters,
}: {
  gpus: readonly Gpu[];
  filters: GpuChoice;
  setFilters: (change: Partial<GpuChoice>) => void;
}) {
  const t = useTexts(texts);
  const stateLabel = useTexts(states);
  const names = (of: (gpu: Gpu) => string) => [...new Set(gpus.map(of))].sort();
  const [models, pools] = [names((gpu) => gpu.model), names((gpu) => gpu.pool)];
  return (
    <Group gap="xs" mb="sm">
      <TextInput
        size="xs"
        w={240}
        aria-label={t("find")}
        placeholder={t("find")}
        leftSection={<Search size={14} aria-hidden />}
        value={filters.q}
        onChange={(event) => setFilters({ q: event.currentTarget.value })}
      />
      <MultiSelect
        size="xs"
        miw={150}
        aria-label={t("health")}
        placeholder={filters.health.length === 0 ? t("allHealth") : undefined}
        data={GPU_HEALTH.map((value) => ({ value, label: stateLabel(value) }))}
        value={[...filters.health]}
        onChange={(health) => setFilters({ health })}
        clearable
      />
      <FilterSelect
        label={t("use")}
        everything={t("freeOrUsed")}
        options={[
          { value: "free", label: t("onlyFree") },
          { value: "used", label: t("onlyUsed") },
        ]}
        value={filters.use}
        onChange={(use) => setFilters({ use })}
      />
      {models.length > 1 && (
        <FilterSelect
          label={t("model")}
          everything={t("allModels")}
          options={models}
          value={filters.model}
          onChange={(model) => setFilters({ model })}
        />
      )}
      {pools.length > 1 && (
        <FilterSelect
          label={t("pool")}
          everything={t("allPools")}
          options={pools}
          value={filters.pool}
          onChange={(pool) => setFilters({ pool })}
        />
      )}
      <FilterSelect
        label={t("node")}
        everything={t("allNodes")}
        options={names((gpu) => gpu.node)}
        value={filters.node}
        onChange={(node) => setFilters({ node })}
        width={170}
      />
    </Group>
  );
}
