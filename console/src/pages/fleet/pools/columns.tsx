import { Group, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";

import type { Schema } from "@/api/client";
import { modelsOf, type Gpu } from "@/pages/fleet/pools/fleet";
import { texts } from "@/pages/fleet/pools/texts";
import { Faint, type Column } from "@/parts/DataTable";
import { Meter } from "@/parts/Meter";
import { common } from "@/texts/common";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

type Pool = Schema<"PoolView">;

export function usePoolColumns(gpus: ReadonlyMap<string, readonly Gpu[]>): readonly Column<Pool>[] {
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
      render: (pool) => <Models pool={pool.name} gpus={gpus} />,
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

function Models({ pool, gpus }: { pool: string; gpus: ReadonlyMap<string, readonly Gpu[]> }) {
  const t = useTexts(texts);
  const own = gpus.get(pool) ?? [];
  const leaving = own.filter((gpu) => gpu.nextPool !== undefined).length;
  const coming = [...gpus.values()].flat().filter((gpu) => gpu.nextPool === pool).length;
  const moves = [
    ...(leaving > 0 ? [t("leaving", { n: leaving })] : []),
    ...(coming > 0 ? [t("coming", { n: coming })] : []),
  ];
  return (
    <>
      {own.length === 0 && (
        <Text size="sm" c="dimmed">
          {t("noGpus")}
        </Text>
      )}
      <Group gap={10}>
        {modelsOf(own).map(([model, count]) => (
          <span key={model} className="num">
            {count} × {model}
          </span>
        ))}
      </Group>
      {moves.length > 0 && <Faint>{moves.join(" · ")}</Faint>}
    </>
  );
}
