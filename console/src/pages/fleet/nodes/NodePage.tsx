import { Alert, Button, Group, Stack, Text } from "@mantine/core";
import { Link, useParams } from "@tanstack/react-router";
import { Compass, TriangleAlert } from "lucide-react";

import { $api } from "@/api/client";
import { problemOf } from "@/api/problem";
import { PageLoading } from "@/app/shell/fallbacks";
import { RangePicker } from "@/charts/RangePicker";
import { Holders } from "@/pages/fleet/gpus/Holders";
import { GpuTable } from "@/pages/fleet/gpus/GpuTable";
import { Labels, part } from "@/pages/fleet/nodes/columns";
import { NodeCharts } from "@/pages/fleet/nodes/NodeCharts";
import type { Node } from "@/pages/fleet/nodes/rules";
import classes from "@/pages/fleet/nodes/Node.module.css";
import { useNodeActions } from "@/pages/fleet/nodes/useNodeActions";
import { texts } from "@/pages/fleet/nodes/texts";
import { ActionButtons } from "@/parts/BatchBar";
import { EmptyState } from "@/parts/EmptyState";
import { PageHeader } from "@/parts/PageHeader";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { Stat } from "@/parts/Stat";
import { StateBadge } from "@/parts/StateBadge";
import { SubjectEvents } from "@/parts/SubjectEvents";
import { states } from "@/texts/common";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

export default function NodePage() {
  const { node: name = "" }: { node?: string } = useParams({ strict: false });
  const t = useTexts(texts);
  const { data: node, error, refetch } = $api.useQuery("get", "/nodes/{node}", { params: { path: { node: name } } });
  if (error !== null && problemOf(error).status === 404) {
    return (
      <EmptyState icon={Compass} title={t("notFound")} hint={t("notFoundHint")}>
        <Button renderRoot={(props) => <Link to="/nodes" {...props} />}>{t("toNodes")}</Button>
      </EmptyState>
    );
  }
  if (node === undefined)
    return error === null ? <PageLoading /> : <ProblemNote error={error} onRetry={() => void refetch()} />;
  return <NodeView node={node} />;
}

function NodeView({ node }: { node: Node }) {
  const t = useTexts(texts);
  const format = useFormat();
  const { actionsFor, parts } = useNodeActions();
  return (
    <>
      <PageHeader
        title={node.id}
        detail={
          <Group gap="xs">
            <StateBadge state={node.state} />
            <span>
              {node.cluster} ·{" "}
              {t("hardware", { cpus: format.number(node.cpus), memory: format.bytes(node.memory_bytes) })}
            </span>
            <Labels labels={node.labels} most={6} />
          </Group>
        }
      >
        <ActionButtons actions={actionsFor([node])} />
      </PageHeader>
      {parts}
      <Notes node={node} />
      <Figures node={node} />
      <Stack gap="sm" mt="sm">
        <Panel title={t("gpusHere")}>
          {node.gpus.length === 0 ? (
            <Text size="sm" c="dimmed">
              {t("noGpus")}
            </Text>
          ) : (
            <GpuTable label={t("gpusHere")} gpus={node.gpus} />
          )}
        </Panel>
        <Panel title={t("charts")} tools={<RangePicker />}>
          <NodeCharts node={node} />
        </Panel>
        <div className={classes.halves}>
          <Panel title={t("jobsHere")}>
            <Holders holders={node.jobs} empty={t("noJobs")} />
          </Panel>
          <Panel title={t("events")}>
            <SubjectEvents subject={node.id} />
          </Panel>
        </div>
      </Stack>
    </>
  );
}

function Notes({ node }: { node: Node }) {
  const t = useTexts(texts);
  const stateLabel = useTexts(states);
  const format = useFormat();
  const drain = node.drain ?? null;
  const isSaid = node.state === "down" && node.withheld !== "ready";
  const isOld = node.host?.stale === true;
  const hasReason = node.reason !== "";
  if (!isSaid && !isOld && !hasReason && drain === null) return null;
  return (
    <Alert color="orange" icon={<TriangleAlert size={18} />} mb="sm">
      {hasReason && t("reasonNote", { reason: node.reason })}
      {drain !== null &&
        (drain.drained_at !== null
          ? t("drainedNote", { user: drain.started_by, at: format.dayTime(drain.drained_at) })
          : drain.empty_by !== null
            ? t("drainNote", { user: drain.started_by, at: format.dayTime(drain.empty_by) })
            : t("drainNoteEnd", { user: drain.started_by }))}
      {isSaid && t("withheldNote", { state: stateLabel(node.withheld) })}
      {isOld && ` ${t("stale")} ${t("staleSince", { at: format.dateTime(node.host?.at ?? "") })}`}
    </Alert>
  );
}

function Figures({ node }: { node: Node }) {
  const t = useTexts(texts);
  const format = useFormat();
  const { host } = node;
  const of = (used: number | null | undefined, total: number | null | undefined) =>
    part(used, total) === null ? undefined : `${format.bytes(used)} / ${format.bytes(total)}`;
  return (
    <div className={classes.figures}>
      <Stat
        label={t("gpus")}
        value={format.number(node.gpus_allocated)}
        unit={`/ ${node.gpus_total}`}
        detail={[
          t("free", { free: format.number(node.gpus_free), n: node.gpus_total }),
          ...(node.taken.gpus > 0 ? [t("taken", { n: node.taken.gpus })] : []),
        ].join(" · ")}
      />
      <Stat label={t("load")} value={format.percent(node.load)} />
      <Stat label={t("cpu")} value={format.percent(host?.cpu ?? null)} />
      <Stat
        label={t("memory")}
        value={format.percent(part(host?.memory_used_bytes, host?.memory_total_bytes))}
        detail={of(host?.memory_used_bytes, host?.memory_total_bytes)}
      />
      <Stat
        label={t("disk")}
        value={format.percent(part(host?.disk_used_bytes, host?.disk_total_bytes))}
        detail={of(host?.disk_used_bytes, host?.disk_total_bytes)}
      />
      <Stat
        label={t("network")}
        value={
          host?.network_receive_bytes === null || host?.network_receive_bytes === undefined
            ? "–"
            : `${format.bytes(host.network_receive_bytes)}/s`
        }
        detail={
          host?.network_send_bytes === null || host?.network_send_bytes === undefined
            ? undefined
            : `${t("sent")} ${format.bytes(host.network_send_bytes)}/s`
        }
      />
    </div>
  );
}
