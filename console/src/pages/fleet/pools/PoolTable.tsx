import { Group, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { Pencil, Trash2 } from "lucide-react";
import { useState } from "react";

import type { Schema } from "@/api/client";
import { modelsOf, type Gpu } from "@/pages/fleet/pools/fleet";
import { useDeletePools, useDeleteRefusal } from "@/pages/fleet/pools/usePoolActions";
import { texts } from "@/pages/fleet/pools/texts";
import { BatchBar } from "@/parts/BatchBar";
import { DataTable, Faint, type Column } from "@/parts/DataTable";
import { Meter } from "@/parts/Meter";
import { RowMenu } from "@/parts/RowMenu";
import { common } from "@/texts/common";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

type Pool = Schema<"PoolView">;

export interface PoolTableProps {
  readonly pools: readonly Pool[] | undefined;
  readonly gpus: ReadonlyMap<string, readonly Gpu[]>;
  readonly onEdit: (name: string) => void;
}

export function PoolTable({ pools, gpus, onEdit }: PoolTableProps) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const columns = useColumns(gpus);
  const refusal = useDeleteRefusal();
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const remove = useDeletePools(pools ?? [], () => setSelected(new Set()));
  const chosen = pools?.filter((pool) => selected.has(pool.name)).map((pool) => pool.name) ?? [];
  return (
    <>
      <BatchBar
        count={chosen.length}
        actions={[{ label: c("delete"), icon: Trash2, danger: true, onClick: () => remove(chosen) }]}
        onClear={() => setSelected(new Set())}
      />
      <DataTable
        label={t("label")}
        rows={pools}
        columns={columns}
        rowKey={(pool) => pool.name}
        onOpen={(pool) => onEdit(pool.name)}
        selected={selected}
        onSelect={setSelected}
        actions={(pool) => (
          <RowMenu
            label={t("actionsOf", { name: pool.name })}
            actions={[
              { label: c("edit"), icon: Pencil, onClick: () => onEdit(pool.name) },
              {
                label: c("delete"),
                icon: Trash2,
                danger: true,
                refusal: refusal(pool),
                onClick: () => remove([pool.name]),
              },
            ]}
          />
        )}
      />
    </>
  );
}

function useColumns(gpus: ReadonlyMap<string, readonly Gpu[]>): readonly Column<Pool>[] {
  const t = useTexts(texts);
  const c = useTexts(common);
  const format = useFormat();
  return [
    {
      key: "name",
      title: c("name"),
      sort: (pool) => pool.name,
      render: (pool) => (
        <>
          {pool.name}
          {pool.description !== "" && <Faint>{pool.description}</Faint>}
        </>
      ),
    },
    {
      key: "models",
      title: t("models"),
      sort: (pool) => pool.gpus_total,
      render: (pool) => <Models gpus={gpus.get(pool.name) ?? []} />,
    },
    {
      key: "used",
      title: t("used"),
      sort: (pool) => pool.gpus_allocated,
      render: (pool) => (
        <Meter
          value={pool.gpus_total === 0 ? null : pool.gpus_allocated / pool.gpus_total}
          label={`${pool.name}: ${t("used")}`}
          text={t("usedOf", { used: format.number(pool.gpus_allocated), total: format.number(pool.gpus_total) })}
        />
      ),
    },
    {
      key: "free",
      title: t("free"),
      numeric: true,
      sort: (pool) => pool.gpus_free,
      render: (pool) => format.number(pool.gpus_free),
    },
    {
      key: "group",
      title: c("group"),
      sort: (pool) => pool.group,
      render: (pool) =>
        pool.group === null ? (
          <Text size="sm" c="dimmed">
            {t("noGroup")}
          </Text>
        ) : (
          <Link to="/groups" search={{ open: pool.group }}>
            {pool.group}
          </Link>
        ),
    },
    { key: "queues", title: t("queues"), wide: true, render: (pool) => pool.queues.join(", ") },
    {
      key: "jobs",
      title: t("jobs"),
      wide: true,
      sort: (pool) => pool.running,
      render: (pool) => <span className="num">{t("jobsOf", { running: pool.running, queued: pool.queued })}</span>,
    },
  ];
}

function Models({ gpus }: { gpus: readonly Gpu[] }) {
  const t = useTexts(texts);
  if (gpus.length === 0)
    return (
      <Text size="sm" c="dimmed">
        {t("noGpus")}
      </Text>
    );
  return (
    <Group gap={10}>
      {modelsOf(gpus).map(([model, count]) => (
        <span key={model} className="num">
          {count} × {model}
        </span>
      ))}
    </Group>
  );
}
