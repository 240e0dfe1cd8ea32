/** GPUs with what is measured of them, their health with the last evidence, and who is on them. */
import { Group, Text } from "@mantine/core";
import { useMemo, type ReactNode } from "react";

import { gpuHref } from "@/pages/fleet/gpus/gpuHref";
import { HolderName } from "@/pages/fleet/gpus/Holders";
import type { Gpu } from "@/pages/fleet/gpus/rules";
import { texts } from "@/pages/fleet/gpus/texts";
import { DataTable, Faint, type Column } from "@/parts/DataTable";
import { Meter } from "@/parts/Meter";
import { StateBadge } from "@/parts/StateBadge";
import { useFormat, type Format } from "@/texts/format";
import { useTexts, type Say } from "@/texts/texts";

export interface GpuTableProps {
  readonly label: string;
  readonly gpus: readonly Gpu[] | undefined;
  readonly selected?: ReadonlySet<string>;
  readonly onSelect?: (selected: ReadonlySet<string>) => void;
  readonly actions?: (gpu: Gpu) => ReactNode;
}

export function GpuTable({ label, gpus, ...rest }: GpuTableProps) {
  const t = useTexts(texts);
  const format = useFormat();
  const columns = useMemo(() => columnsOf(t, format), [t, format]);
  return (
    <DataTable
      label={label}
      rows={gpus}
      columns={columns}
      rowKey={(gpu) => gpu.id}
      href={(gpu) => gpuHref(gpu.id)}
      {...rest}
    />
  );
}

function columnsOf(t: Say<typeof texts>, format: Format): Column<Gpu>[] {
  const memory = (gpu: Gpu) =>
    gpu.reading?.memory_used_bytes === null || gpu.reading === null
      ? null
      : (gpu.reading.memory_used_bytes ?? 0) / gpu.memory_bytes;
  return [
    { key: "id", title: t("gpu"), render: (gpu) => <Name gpu={gpu} />, sort: (gpu) => gpu.id },
    { key: "health", title: t("health"), render: (gpu) => <Health gpu={gpu} />, sort: (gpu) => gpu.health },
    {
      key: "pool",
      title: t("pool"),
      wide: true,
      render: (gpu) => (
        <>
          {gpu.pool}
          {gpu.next_pool !== "" && <Faint>{t("movesTo", { pool: gpu.next_pool })}</Faint>}
        </>
      ),
      sort: (gpu) => gpu.pool,
    },
    {
      key: "utilization",
      title: t("utilization"),
      render: (gpu) => (
        <Meter
          value={gpu.reading?.utilization ?? null}
          label={t("utilization")}
          text={format.percent(gpu.reading?.utilization)}
          width={56}
        />
      ),
      sort: (gpu) => gpu.reading?.utilization ?? null,
    },
    {
      key: "memory",
      title: t("memory"),
      wide: true,
      render: (gpu) => (
        <Meter value={memory(gpu)} label={t("memory")} text={format.bytes(gpu.reading?.memory_used_bytes)} width={56} />
      ),
      sort: memory,
    },
    {
      key: "temperature",
      title: t("temperature"),
      wide: true,
      numeric: true,
      render: (gpu) => format.celsius(gpu.reading?.temperature_celsius),
      sort: (gpu) => gpu.reading?.temperature_celsius ?? null,
    },
    {
      key: "power",
      title: t("power"),
      wide: true,
      numeric: true,
      render: (gpu) => format.watts(gpu.reading?.power_watts),
      sort: (gpu) => gpu.reading?.power_watts ?? null,
    },
    {
      key: "clocks",
      title: t("clocks"),
      wide: true,
      numeric: true,
      render: (gpu) => megahertz(gpu.reading?.sm_clock_mhz),
      sort: (gpu) => gpu.reading?.sm_clock_mhz ?? null,
    },
    { key: "jobs", title: t("heldBy"), render: (gpu) => <Users gpu={gpu} />, sort: (gpu) => gpu.jobs[0]?.user ?? null },
  ];
}

export function megahertz(value: number | null | undefined): string {
  return value === null || value === undefined ? "–" : `${Math.round(value)} MHz`;
}

function Name({ gpu }: { gpu: Gpu }) {
  return (
    <span style={{ whiteSpace: "nowrap" }}>
      {gpu.id}
      <Faint>
        {gpu.model} · {gpu.node}
      </Faint>
    </span>
  );
}

function Health({ gpu }: { gpu: Gpu }) {
  const last = gpu.health === "healthy" ? undefined : gpu.evidence.at(-1);
  return (
    <>
      <StateBadge state={gpu.health} />
      {last !== undefined && (
        <Text size="xs" c="dimmed" truncate maw={220} title={last.text}>
          {last.text}
        </Text>
      )}
    </>
  );
}

/** Why a GPU without jobs can be used now, or not. */
function idleText(gpu: Gpu): "takenByOthers" | "free" | "reserved" | "notFree" {
  if (gpu.taken) return "takenByOthers";
  if (gpu.reserved) return "reserved";
  return gpu.free ? "free" : "notFree";
}

function Users({ gpu }: { gpu: Gpu }) {
  const t = useTexts(texts);
  const first = gpu.jobs[0];
  if (first === undefined)
    return (
      <Text size="sm" c="dimmed">
        {t(idleText(gpu))}
      </Text>
    );
  return (
    <Group gap={4} wrap="nowrap">
      <Text size="sm" truncate maw={200}>
        {first.user} · <HolderName holder={first} />
      </Text>
      {gpu.jobs.length > 1 && (
        <Text size="xs" c="dimmed">
          +{gpu.jobs.length - 1}
        </Text>
      )}
    </Group>
  );
}
