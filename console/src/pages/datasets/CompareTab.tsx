/** The differences between two versions, file by file. */
import { Badge, Group, Select, Stack, Text } from "@mantine/core";
import { Equal, GitCompare } from "lucide-react";
import { useMemo } from "react";

import { $api, type Schema } from "@/api/client";
import { useAll } from "@/api/useAll";
import { useFilters } from "@/app/useFilters";
import type { Dataset, Version } from "@/pages/datasets/dataset";
import { texts } from "@/pages/datasets/texts";
import { DataTable, type Column } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

const FILTERS = { from: "", to: "" };

export function CompareTab({ dataset }: { dataset: Dataset }) {
  const t = useTexts(texts);
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

type Diff = Schema<"DiffView">;
type Kind = "added" | "removed" | "changed";

interface Row {
  readonly path: string;
  readonly kind: Kind;
  readonly before: number | null;
  readonly after: number | null;
}

const COLORS = { added: "teal", removed: "red", changed: "blue" } as const;

function Changes({ dataset, from, to }: { dataset: string; from: string; to: string }) {
  const t = useTexts(texts);
  const { data, error, refetch } = $api.useQuery("get", "/datasets/{dataset}/diff", {
    params: { path: { dataset }, query: { from, to } },
  });
  const columns = useColumns();
  const rows = useMemo(() => (data === undefined ? undefined : rowsOf(data)), [data]);
  if (error !== null) return <ProblemNote error={error} onRetry={() => void refetch()} />;
  return (
    <Stack gap="sm">
      {data !== undefined && rows !== undefined && rows.length > 0 && <Totals diff={data} />}
      <DataTable
        label={t("compare")}
        rows={rows}
        columns={columns}
        rowKey={(row) => `${row.kind} ${row.path}`}
        initialSort={{ key: "path", descending: false }}
        empty={<EmptyState icon={Equal} title={t("same")} hint={t("sameHint")} />}
      />
      {data?.truncated === true && (
        <Text size="sm" c="dimmed">
          {t("truncated")}
        </Text>
      )}
    </Stack>
  );
}

function rowsOf({ added, removed, changed }: Diff): readonly Row[] {
  return [
    ...added.map(({ path, size }): Row => ({ path, kind: "added", before: null, after: size })),
    ...removed.map(({ path, old_size }): Row => ({ path, kind: "removed", before: old_size, after: null })),
    ...changed.map(({ path, size, old_size }): Row => ({ path, kind: "changed", before: old_size, after: size })),
  ];
}

function Totals({ diff }: { diff: Diff }) {
  const t = useTexts(texts);
  const format = useFormat();
  const counts = [
    ["added", diff.added_count],
    ["removed", diff.removed_count],
    ["changed", diff.changed_count],
  ] as const;
  return (
    <Group gap="xs" role="status">
      {counts
        .filter(([, n]) => n > 0)
        .map(([kind, n]) => (
          <Badge key={kind} variant="light" color={COLORS[kind]} tt="none" fw={500}>
            {t(kind, { n: format.number(n) })}
          </Badge>
        ))}
      <Text size="xs" c="dimmed" className="num">
        {`+${format.bytes(diff.bytes_added)} −${format.bytes(diff.bytes_removed)}`}
      </Text>
    </Group>
  );
}

function useColumns(): readonly Column<Row>[] {
  const t = useTexts(texts);
  const format = useFormat();
  return useMemo(() => {
    const names = { added: t("isAdded"), removed: t("isRemoved"), changed: t("isChanged") };
    return [
      {
        key: "change",
        title: t("change"),
        width: 110,
        sort: (row) => row.kind,
        render: ({ kind }) => (
          <Badge variant="light" color={COLORS[kind]} tt="none" fw={500}>
            {names[kind]}
          </Badge>
        ),
      },
      {
        key: "path",
        title: t("path"),
        sort: (row) => row.path,
        render: (row) => <span style={{ overflowWrap: "anywhere" }}>{row.path}</span>,
      },
      { key: "before", title: t("sizeBefore"), numeric: true, wide: true, render: (row) => format.bytes(row.before) },
      { key: "after", title: t("sizeAfter"), numeric: true, wide: true, render: (row) => format.bytes(row.after) },
    ];
  }, [t, format]);
}
