/** The map's facts as a table, for those who read better than they see patterns. */
import { useMemo } from "react";

import { gpuHref } from "@/pages/fleet/gpus/gpuHref";
import { heldText } from "@/pages/fleet/overview/map/facts";
import type { Gpu } from "@/pages/fleet/overview/map/gpus";
import { useSpeech } from "@/pages/fleet/overview/map/useSpeech";
import { DataTable, type Column } from "@/parts/DataTable";
import { StateBadge } from "@/parts/StateBadge";

export default function MapTable({ gpus }: { gpus: readonly Gpu[] }) {
  const speech = useSpeech();
  const { t } = speech;
  const columns = useMemo<Column<Gpu>[]>(() => {
    const { t, format } = speech;
    return [
      { key: "id", title: t("gpu"), render: (gpu) => gpu.id, sort: (gpu) => gpu.id },
      { key: "node", title: t("node"), wide: true, render: (gpu) => gpu.node, sort: (gpu) => gpu.node },
      { key: "model", title: t("model"), wide: true, render: (gpu) => gpu.model, sort: (gpu) => gpu.model },
      {
        key: "health",
        title: t("health"),
        render: (gpu) => <StateBadge state={gpu.health} />,
        sort: (gpu) => gpu.health,
      },
      { key: "held", title: t("held"), render: (gpu) => heldText(gpu, speech), sort: (gpu) => gpu.owner },
      {
        key: "utilization",
        title: t("utilization"),
        numeric: true,
        render: (gpu) => format.percent(gpu.utilization),
        sort: (gpu) => gpu.utilization,
      },
      {
        key: "memory",
        title: t("memory"),
        numeric: true,
        wide: true,
        render: (gpu) => format.percent(gpu.memory),
        sort: (gpu) => gpu.memory,
      },
      {
        key: "temperature",
        title: t("temperature"),
        numeric: true,
        wide: true,
        render: (gpu) => format.celsius(gpu.temperature),
        sort: (gpu) => gpu.temperature,
      },
      {
        key: "power",
        title: t("power"),
        numeric: true,
        wide: true,
        render: (gpu) => format.watts(gpu.power),
        sort: (gpu) => gpu.power,
      },
    ];
  }, [speech]);
  return (
    <DataTable
      label={t("title")}
      rows={gpus}
      columns={columns}
      rowKey={(gpu) => gpu.id}
      href={(gpu) => gpuHref(gpu.id)}
    />
  );
}
