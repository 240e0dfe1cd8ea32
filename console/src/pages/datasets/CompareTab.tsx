/** What changed between two versions, file by file. */
import { Badge, Group, Select, Stack, Text } from "@mantine/core";
import { Equal, GitCompare } from "lucide-react";
import { useMemo } from "react";

import { $api, type Schema } from "@/api/client";
import { useAll } from "@/api/useAll";
import { useFilters } from "@/app/useFilters";
import type { Dataset, Version } from "@/pages/datasets/dataset";
import { words } from "@/pages/datasets/words";
import { DataTable, type Column } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { useFormat } from "@/words/format";
import { useWords } from "@/words/words";

const FILTERS = { from: "", to: "" };

export function CompareTab({ dataset }: { dataset: Dataset }) {
  const t = useWords(words);
  const [filters, setFilters] = useFilters(FILTERS);
  const versions = useAll("/datasets/{dataset}/versions", {}, true, { dataset: dataset.id });
  if (versions.error !== null) return <ProblemNote error={versions.error} onRetry={() => void versions.refetch()} />;
  if (versions.data !== undefined && versions.data.length < 2)
    return <EmptyState icon={GitCompare} title={t("oneVersion")} />;
  // Without a choice: the latest one, and the one before it.
  const to = filters.to === "" ? (versions.data?.[0]?.id ?? "") : filters.to;
  const from = filters.from === "" ? (versions.data?.[1]?.id ?? "") : filters.from;
  return (
    <Panel title={t("compare")}>
      <Group gap="sm" mb="md" align="flex-end">
        <VersionSelect
          label={t("older")}
          versions={versions.data}
          value={from}
          onChange={(id) => setFilters({ from: id })}
        />
        <VersionSelect
          label={t("newer")}
          versions={versions.data}
          value={to}
          onChange={(id) => setFilters({ to: id })}
        />
      </Group>
      {from !== "" && to !== "" && <Changes dataset={dataset.id} from={from} to={to} />}
    </Panel>
  );
}

export function VersionSelect({
  label,
  versions,
  value,
  onChange,
}: {
  label: string;
  versions: readonly Version[] | undefined;
  value: string;
  onChange: (id: string) => void;
}) {
  const options = (versions ?? []).map(({ id, short, tags, message }) => ({
    value: id,
    label: [short, ...tags, message].filter((part) => part !== "").join(" · "),
  }));
  return (
    <Select
      label={label}
      w={320}
      maw="100%"
      searchable
      allowDeselect={false}
      data={options}
      value={value === "" ? null : value}
      onChange={(id) => onChange(id ?? "")}
    />
  );
}
