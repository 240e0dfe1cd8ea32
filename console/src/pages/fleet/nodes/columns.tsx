import { Badge, Group, Text } from "@mantine/core";
import { useMemo } from "react";

import { GpuCells } from "@/pages/fleet/nodes/GpuCells";
import type { Node } from "@/pages/fleet/nodes/rules";
import { texts } from "@/pages/fleet/nodes/texts";
import { Faint, type Column } from "@/parts/DataTable";
import { Meter } from "@/parts/Meter";
import { StateBadge } from "@/parts/StateBadge";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

const LABELS = 1;

export function useNodeColumns(): readonly Column<Node>[] {
  const t = useTexts(texts);
  const format = useFormat();
  return useMemo<Column<Node>[]>(
    () => [
      { key: "id", title: t("nodeName"), render: (node) => <Name node={node} />, sort: (node) => node.id },
      {
        key: "state",
        title: t("state"),
        render: (node) => (
          <>
            <StateBadge state={node.state} />
            {node.reason !== "" && <Faint>{node.reason}</Faint>}
          </>
        ),
        sort: (node) => node.state,
      },
      {
        key: "gpus",
        title: t("gpus"),
        render: (node) => <GpuCells gpus={node.gpus} free={node.gpus_free} />,
        sort: (node) => node.gpus_total,
      },
      {
        key: "free",
        title: t("freeTitle"),
        numeric: true,
        render: (node) => (
          <>
            {format.number(node.gpus_free)} / {node.gpus_total}
            {node.taken.gpus > 0 && <Faint>{t("taken", { n: node.taken.gpus })}</Faint>}
          </>
        ),
        sort: (node) => node.gpus_free,
      },
      {
        key: "load",
        title: t("load"),
        wide: true,
        render: (node) => <Part value={node.load} label={t("load")} />,
        sort: (node) => node.load,
      },
      {
        key: "cpu",
        title: t("cpu"),
        wide: true,
        render: (node) => <Part value={node.host?.cpu ?? null} label={t("cpu")} />,
        sort: (node) => node.host?.cpu ?? null,
      },
      {
        key: "memory",
        title: t("memory"),
        wide: true,
        render: (node) => (
          <Part
            value={part(node.host?.memory_used_bytes, node.host?.memory_total_bytes)}
            label={t("memory")}
            warnAt={0.9}
          />
        ),
        sort: (node) => part(node.host?.memory_used_bytes, node.host?.memory_total_bytes),
      },
      {
        key: "disk",
        title: t("disk"),
        wide: true,
        render: (node) => (
          <Part value={part(node.host?.disk_used_bytes, node.host?.disk_total_bytes)} label={t("disk")} warnAt={0.9} />
        ),
        sort: (node) => part(node.host?.disk_used_bytes, node.host?.disk_total_bytes),
      },
      {
        key: "network",
        title: t("network"),
        wide: true,
        numeric: true,
        render: (node) => <Network node={node} />,
        sort: (node) => (node.host?.network_receive_bytes ?? 0) + (node.host?.network_send_bytes ?? 0),
      },
      {
        key: "jobs",
        title: t("jobs"),
        numeric: true,
        render: (node) => node.jobs.length,
        sort: (node) => node.jobs.length,
      },
      { key: "labels", title: t("labels"), wide: true, render: (node) => <Labels labels={node.labels} /> },
    ],
    [t, format],
  );
}

export function part(used: number | null | undefined, total: number | null | undefined): number | null {
  return used === null || used === undefined || total === null || total === undefined || total === 0
    ? null
    : used / total;
}

function Name({ node }: { node: Node }) {
  return (
    <span style={{ whiteSpace: "nowrap" }}>
      {node.id}
      <Faint>{node.cluster}</Faint>
    </span>
  );
}

function Part({ value, label, warnAt }: { value: number | null; label: string; warnAt?: number }) {
  const format = useFormat();
  return <Meter value={value} label={label} text={format.percent(value)} width={44} warnAt={warnAt} />;
}

function Network({ node }: { node: Node }) {
  const t = useTexts(texts);
  const format = useFormat();
  const { network_receive_bytes: received, network_send_bytes: sent } = node.host ?? {};
  if (received === null || received === undefined || sent === null || sent === undefined) return <>–</>;
  return (
    <Text size="xs" component="div" className="num">
      <span title={t("received")}>↓ {format.bytes(received)}/s</span>
      <br />
      <span title={t("sent")}>↑ {format.bytes(sent)}/s</span>
    </Text>
  );
}

export function Labels({ labels, most = LABELS }: { labels: Readonly<Record<string, string>>; most?: number }) {
  const all = Object.entries(labels);
  return (
    <Group gap={4} wrap={most === LABELS ? "nowrap" : "wrap"}>
      {all.slice(0, most).map(([name, value]) => (
        <Badge key={name} variant="default" size="sm" tt="none" fw={400} title={`${name}=${value}`}>
          {name}={value}
        </Badge>
      ))}
      {all.length > most && (
        <Text
          size="xs"
          c="dimmed"
          title={all
            .slice(most)
            .map(([name, value]) => `${name}=${value}`)
            .join(", ")}
        >
          +{all.length - most}
        </Text>
      )}
    </Group>
  );
}
