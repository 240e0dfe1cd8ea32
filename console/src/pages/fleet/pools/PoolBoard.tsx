/** All GPUs, a column per pool. Filters narrow what is shown; what was chosen stays chosen. */
import { Checkbox, Group, Select, Text, TextInput } from "@mantine/core";
import { CircleAlert, CircuitBoard, MoveRight, Play, Search } from "lucide-react";
import { useCallback, useMemo, useState } from "react";

import type { Schema } from "@/api/client";
import { useFilters } from "@/app/useFilters";
import { grouped, modelsOf, byPool, moveRefusal, type Gpu } from "@/pages/fleet/pools/fleet";
import { MoveDialog, type MoveWish } from "@/pages/fleet/pools/MoveDialog";
import { useMoveGpus, type GpuMove } from "@/pages/fleet/pools/usePoolActions";
import { texts } from "@/pages/fleet/pools/texts";
import { Board } from "@/parts/board/Board";
import type { BoardColumn, Tile } from "@/parts/board/types";
import { EmptyState } from "@/parts/EmptyState";
import { common, states } from "@/texts/common";
import { useTexts, type Say } from "@/texts/texts";

const FILTERS = { q: "", model: "", free: "" };

export function PoolBoard({ pools, gpus }: { pools: readonly Schema<"PoolView">[]; gpus: readonly Gpu[] }) {
  const t = useTexts(texts);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [move, setMove] = useState<MoveWish>();
  const moveGpus = useMoveGpus(() => setSelected(new Set()));
  const [filters, setFilters] = useFilters(FILTERS);
  const columns = useColumns(pools, gpus, filters);
  const refusal = useCallback(
    (ids: readonly string[], pool: string) => moveRefusal(t, gpus, only(gpus, ids), pool),
    [t, gpus],
  );
  const describe = useCallback((n: number) => t("gpuCount", { n }), [t]);
  if (gpus.length === 0) return <EmptyState icon={CircuitBoard} title={t("emptyTitle")} hint={t("emptyHint")} />;
  return (
    <>
      <GpuFilters
        gpus={gpus}
        filters={filters}
        onChange={setFilters}
        shown={columns.reduce(
          (sum, column) => sum + column.rows.reduce((count, row) => count + row.tiles.length, 0),
          0,
        )}
      />
      <Board
        columns={columns}
        selected={selected}
        onSelect={setSelected}
        refusal={refusal}
        onMove={(ids, pool) => setMove({ ids, pool })}
        describe={describe}
      />
      {move !== undefined && (
        <MoveDialog
          move={move}
          gpus={gpus}
          pools={pools}
          onClose={() => setMove(undefined)}
          onMove={(wanted) => {
            setMove(undefined);
            moveGpus.mutate({ ...wanted, back: backOf(gpus, wanted) });
          }}
        />
      )}
    </>
  );
}

/** The moves that take this one back: each GPU goes to the pool that it has now, or was to move to. */
function backOf(gpus: readonly Gpu[], { ids, pool }: MoveWish): readonly GpuMove[] {
  const moved = gpus.filter((gpu) => ids.includes(gpu.id));
  const before = grouped(moved, (gpu) => (gpu.pool === pool ? gpu.nextPool : undefined) ?? gpu.pool);
  return [...before].map(([name, own]) => ({ pool: name, ids: own.map((gpu) => gpu.id), whenFree: true }));
}

type Wanted = Readonly<Record<keyof typeof FILTERS, string>>;

function GpuFilters({
  gpus,
  filters,
  onChange,
  shown,
}: {
  gpus: readonly Gpu[];
  filters: Wanted;
  onChange: (change: Partial<Wanted>) => void;
  shown: number;
}) {
  const t = useTexts(texts);
  const c = useTexts(common);
  return (
    <Group gap="xs" align="center">
      <TextInput
        aria-label={t("searchGpus")}
        placeholder={t("searchGpus")}
        size="xs"
        w={240}
        leftSection={<Search size={14} />}
        value={filters.q}
        onChange={(event) => onChange({ q: event.currentTarget.value })}
      />
      <Select
        aria-label={c("model")}
        placeholder={t("allModels")}
        size="xs"
        w={180}
        clearable
        data={modelsOf(gpus).map(([model]) => model)}
        value={filters.model === "" ? null : filters.model}
        onChange={(model) => onChange({ model: model ?? "" })}
      />
      <Checkbox
        size="xs"
        label={t("onlyFree")}
        checked={filters.free !== ""}
        onChange={(event) => onChange({ free: event.currentTarget.checked ? "yes" : "" })}
      />
      <Text size="xs" c="dimmed" className="num" role="status">
        {t("shown", { shown, total: gpus.length })}
      </Text>
    </Group>
  );
}

function useColumns(
  pools: readonly Schema<"PoolView">[],
  gpus: readonly Gpu[],
  filters: Wanted,
): readonly BoardColumn[] {
  const t = useTexts(texts);
  const s = useTexts(states);
  return useMemo(() => {
    const inPool = byPool(gpus);
    return pools.map((pool) => {
      const own = inPool.get(pool.name) ?? [];
      const shown = own.filter((gpu) => fits(gpu, filters));
      const free = own.filter((gpu) => gpu.isFree).length;
      const models = modelsOf(own)
        .map(([model]) => model)
        .join(", ");
      const counts = t("columnDetail", { total: own.length, free, models: models === "" ? "–" : models });
      const nodes = grouped(shown, (gpu) => `${gpu.node} · ${gpu.model}`);
      return {
        id: pool.name,
        title: pool.name,
        detail: pool.group === null ? counts : `${counts} · ${t("columnGroup", { group: pool.group })}`,
        rows: [...nodes].map(([title, part]) => ({ key: title, title, tiles: part.map((gpu) => tileOf(t, s, gpu)) })),
        empty: own.length === 0 ? t("emptyColumn") : t("emptyFiltered"),
      };
    });
  }, [pools, gpus, filters, t, s]);
}

function tileOf(t: Say<typeof texts>, s: Say<typeof states>, gpu: Gpu): Tile {
  const isBad = gpu.health !== "healthy";
  const health = gpu.health in states ? s(gpu.health as keyof typeof states) : gpu.health;
  const parts = [
    t("gpuLabel", { index: gpu.index, node: gpu.node, model: gpu.model }),
    ...(isBad ? [health] : []),
    ...(gpu.isFree ? [t("gpuFree")] : []),
    ...(gpu.isHeld
      ? [gpu.job === null ? t("gpuHeld") : t("gpuHeldBy", { job: gpu.job, owner: gpu.owner ?? "?" })]
      : []),
    ...(gpu.nextPool === undefined ? [] : [t("gpuMoves", { pool: gpu.nextPool })]),
  ];
  return {
    id: gpu.id,
    label: parts.join(", "),
    tone: isBad ? "bad" : gpu.isHeld ? "used" : "free",
    content: (
      <>
        {gpu.isHeld && <Play size={11} aria-hidden />}
        {isBad && <CircleAlert size={11} aria-hidden />}
        {gpu.index}
        {gpu.nextPool !== undefined && <MoveRight size={11} aria-hidden />}
      </>
    ),
  };
}

function fits(gpu: Gpu, { q, model, free }: Wanted): boolean {
  if (model !== "" && gpu.model !== model) return false;
  if (free !== "" && !gpu.isFree) return false;
  const text = q.trim().toLowerCase();
  return (
    text === "" || [gpu.id, gpu.node, gpu.job ?? "", gpu.owner ?? ""].some((one) => one.toLowerCase().includes(text))
  );
}

function only(gpus: readonly Gpu[], ids: readonly string[]): readonly Gpu[] {
  const wanted = new Set(ids);
  return gpus.filter((gpu) => wanted.has(gpu.id));
}
