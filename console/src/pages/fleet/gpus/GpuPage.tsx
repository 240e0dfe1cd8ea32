import { Alert, Button, Group, Stack } from "@mantine/core";
import { Link, useParams } from "@tanstack/react-router";
import { Compass, TriangleAlert } from "lucide-react";

import { $api } from "@/api/client";
import { problemOf } from "@/api/problem";
import { useIsOperator } from "@/app/session";
import { PageLoading } from "@/app/shell/fallbacks";
import { RangePicker } from "@/charts/RangePicker";
import { Checks } from "@/pages/fleet/gpus/Checks";
import { Evidence } from "@/pages/fleet/gpus/Evidence";
import { GpuCharts } from "@/pages/fleet/gpus/GpuCharts";
import { Holders } from "@/pages/fleet/gpus/Holders";
import { LeavingNote } from "@/pages/fleet/gpus/LeavingNote";
import { Readings } from "@/pages/fleet/gpus/Readings";
import type { Gpu } from "@/pages/fleet/gpus/rules";
import { useGpuActions } from "@/pages/fleet/gpus/useGpuActions";
import { texts } from "@/pages/fleet/gpus/texts";
import classes from "@/pages/fleet/nodes/Node.module.css";
import { ActionButtons } from "@/parts/BatchBar";
import { EmptyState } from "@/parts/EmptyState";
import { Moment } from "@/parts/Moment";
import { PageHeader } from "@/parts/PageHeader";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { StateBadge } from "@/parts/StateBadge";
import { SubjectEvents } from "@/parts/SubjectEvents";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

export default function GpuPage() {
  const { _splat: id = "" }: { _splat?: string } = useParams({ strict: false });
  const t = useTexts(texts);
  const { data: gpu, error, refetch } = $api.useQuery("get", "/gpus/{gpu}", { params: { path: { gpu: id } } });
  if (error !== null && problemOf(error).status === 404) {
    return (
      <EmptyState icon={Compass} title={t("notFound")} hint={t("notFoundHint")}>
        <Button renderRoot={(props) => <Link to="/" {...props} />}>{t("toOverview")}</Button>
      </EmptyState>
    );
  }
  if (gpu === undefined)
    return error === null ? <PageLoading /> : <ProblemNote error={error} onRetry={() => void refetch()} />;
  return <GpuView gpu={gpu} />;
}

function GpuView({ gpu }: { gpu: Gpu }) {
  const t = useTexts(texts);
  const isOperator = useIsOperator();
  const { actionsFor, parts } = useGpuActions();
  return (
    <>
      <PageHeader title={gpu.id} detail={<Head gpu={gpu} />}>
        {isOperator && <ActionButtons actions={actionsFor([gpu])} />}
      </PageHeader>
      {parts}
      <LeavingNote gpu={gpu} />
      <Staleness gpu={gpu} />
      <Readings gpu={gpu} />
      <Stack gap="sm" mt="sm">
        <Panel title={t("charts")} tools={<RangePicker />}>
          <GpuCharts gpu={gpu} />
        </Panel>
        <div className={classes.halves}>
          <Panel title={t("jobs")}>
            <Holders holders={gpu.jobs} empty={t("noJobs")} />
          </Panel>
          <Panel title={t("evidence")}>
            <Evidence gpu={gpu} />
          </Panel>
          <Panel title={t("checks")}>
            <Checks gpu={gpu} />
          </Panel>
          <Panel title={t("events")}>
            <SubjectEvents subject={gpu.id} />
          </Panel>
        </div>
      </Stack>
    </>
  );
}

function Head({ gpu }: { gpu: Gpu }) {
  const t = useTexts(texts);
  const isOperator = useIsOperator();
  return (
    <Group gap="xs">
      <StateBadge state={gpu.health} />
      {gpu.health_since !== null && (
        <span>
          {t("since")} <Moment at={gpu.health_since} />
        </span>
      )}
      <span>
        {gpu.model} · {t("node")}{" "}
        {isOperator ? (
          <Link to={`/nodes/${encodeURIComponent(gpu.node)}`} style={{ color: "inherit" }}>
            {gpu.node}
          </Link>
        ) : (
          gpu.node
        )}{" "}
        · {t("pool")}{" "}
        {isOperator ? (
          <Link to="/pools" search={{ open: gpu.pool }} style={{ color: "inherit" }}>
            {gpu.pool}
          </Link>
        ) : (
          gpu.pool
        )}
        {gpu.link_group !== "" && ` · ${t("links")} ${gpu.link_group}`}
      </span>
    </Group>
  );
}

/** Old figures must not pass for the present ones. */
function Staleness({ gpu }: { gpu: Gpu }) {
  const t = useTexts(texts);
  const format = useFormat();
  const { reading } = gpu;
  if (reading !== null && !reading.stale && !reading.lost) return null;
  return (
    <Alert color="orange" icon={<TriangleAlert size={18} />} mb="sm">
      {reading === null ? t("neverRead") : reading.lost ? t("lost") : t("stale", { at: format.dateTime(reading.at) })}
    </Alert>
  );
}
