import { Badge, Code, Group, TextInput } from "@mantine/core";
import { Search, Server } from "lucide-react";
import { useMemo, useState } from "react";

import { NODE_STATES } from "@/api/enumerations";
import { useAll } from "@/api/useAll";
import { useCluster } from "@/app/cluster";
import { useFilters } from "@/app/useFilters";
import { useNodeColumns } from "@/pages/fleet/nodes/columns";
import { matching, type Node } from "@/pages/fleet/nodes/rules";
import { useNodeActions } from "@/pages/fleet/nodes/useNodeActions";
import { texts } from "@/pages/fleet/nodes/texts";
import { BatchBar } from "@/parts/BatchBar";
import ClusterHealth from "@/parts/ClusterHealth";
import { DataTable, NothingFound } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import FilterSelect from "@/parts/FilterSelect";
import { PageHeader } from "@/parts/PageHeader";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { RowMenu } from "@/parts/RowMenu";
import { states } from "@/texts/common";
import { navigation } from "@/texts/navigation";
import { useTexts } from "@/texts/texts";

const FILTERS = { q: "", state: "", model: "" };

export default function NodesPage() {
  const page = useTexts(navigation);
  const t = useTexts(texts);
  const nodes = useAll("/nodes");
  const cluster = useCluster();
  const here = useMemo(
    () => nodes.data?.filter((node) => cluster === "" || node.cluster === cluster),
    [nodes.data, cluster],
  );
  const ready = here?.filter((node) => node.state === "ready").length ?? 0;
  return (
    <>
      <PageHeader title={page("nodes")} detail={here !== undefined && t("summary", { ready, n: here.length })} />
      <ClusterHealth />
      {nodes.error !== null && <ProblemNote error={nodes.error} onRetry={() => void nodes.refetch()} />}
      {(nodes.data !== undefined || nodes.error === null) && <Nodes nodes={here} />}
    </>
  );
}

function Nodes({ nodes }: { nodes: readonly Node[] | undefined }) {
  const page = useTexts(navigation);
  const t = useTexts(texts);
  const [filters, setFilters] = useFilters(FILTERS);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const columns = useNodeColumns();
  const { actionsFor, parts } = useNodeActions();
  const shown = useMemo(() => (nodes === undefined ? undefined : matching(nodes, filters)), [nodes, filters]);
  const chosen = shown?.filter((node) => selected.has(node.id)) ?? [];
  if (nodes?.length === 0)
    return (
      <EmptyState icon={Server} title={t("none")} hint={t("noneHint")}>
        <Code>corral doctor</Code>
      </EmptyState>
    );
  return (
    <>
      <FilterBar nodes={nodes ?? []} filters={filters} setFilters={setFilters} />
      <BatchBar count={chosen.length} actions={actionsFor(chosen)} onClear={() => setSelected(new Set())} />
      {parts}
      <Panel p={0}>
        <DataTable
          label={page("nodes")}
          rows={shown}
          columns={columns}
          rowKey={(node) => node.id}
          href={(node) => `/nodes/${encodeURIComponent(node.id)}`}
          selected={selected}
          onSelect={setSelected}
          initialSort={{ key: "id", descending: false }}
          actions={(node) => <RowMenu label={t("actionsOf", { node: node.id })} actions={actionsFor([node])} />}
          empty={<NothingFound />}
        />
      </Panel>
    </>
  );
}

function FilterBar({
  nodes,
  filters,
  setFilters,
}: {
  nodes: readonly Node[];
  filters: Readonly<Record<keyof typeof FILTERS, string>>;
  setFilters: (change: Partial<Record<keyof typeof FILTERS, string>>) => void;
}) {
  const t = useTexts(texts);
  const stateLabel = useTexts(states);
  const models = [...new Set(nodes.flatMap((node) => node.gpus.map((gpu) => gpu.model)))].sort();
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
      <FilterSelect
        label={t("state")}
        everything={t("allStates")}
        options={NODE_STATES.map((value) => ({ value, label: stateLabel(value) }))}
        value={filters.state}
        onChange={(state) => setFilters({ state })}
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
      {NODE_STATES.map((state) => {
        const count = nodes.filter((node) => node.state === state).length;
        return count > 0 && state !== "ready" ? (
          <Badge key={state} variant="light" color={state === "down" ? "red" : "orange"} tt="none">
            {count} {stateLabel(state)}
          </Badge>
        ) : null;
      })}
    </Group>
  );
}
