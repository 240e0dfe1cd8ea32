/** Firing and pending alerts, updated by the event stream. */
import { ActionIcon, Button, Tooltip } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { BellOff, BellRing, CheckCheck } from "lucide-react";
import { useMemo, useState } from "react";

import { useAll } from "@/api/useAll";
import { useFilters } from "@/app/useFilters";
import { AcknowledgeForm } from "@/pages/alerts/AcknowledgeForm";
import { Standing, WhatAndNote, type AlertView } from "@/pages/alerts/alert";
import { AlertDrawer } from "@/pages/alerts/AlertDrawer";
import { isCovered } from "@/pages/alerts/covered";
import { SilenceForm } from "@/pages/alerts/SilenceForm";
import { texts } from "@/pages/alerts/texts";
import { DataTable, type Column } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { Moment } from "@/parts/Moment";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { StateBadge } from "@/parts/StateBadge";
import { SubjectLink } from "@/parts/SubjectLink";
import { common } from "@/texts/common";
import { useTexts, type Say } from "@/texts/texts";

const FILTERS = { open: "" };
const RANK: Readonly<Record<string, number>> = { critical: 0, warning: 1, info: 2 };

export function useFiring() {
  return useAll("/alerts", { state: ["firing", "pending"] });
}

export function FiringTab() {
  const t = useTexts(texts);
  const c = useTexts(common);
  const [filters, setFilters] = useFilters(FILTERS);
  const [acknowledging, setAcknowledging] = useState<AlertView>();
  const [silencing, setSilencing] = useState<AlertView>();
  const { data, error, refetch } = useFiring();
  const { data: silences } = useAll("/silences");
  // The server reports which alerts were silenced when they fired; a later silence covers them, too, until the next notification.
  const rows = useMemo(
    () => data?.map((alert) => ({ ...alert, silenced: alert.silenced || isCovered(alert, silences ?? []) })),
    [data, silences],
  );
  const columns = useMemo(() => columnsOf(t, c("state")), [t, c]);
  if (error !== null && data === undefined) return <ProblemNote error={error} onRetry={() => void refetch()} />;
  return (
    <Panel p={0}>
      <DataTable
        label={t("firing")}
        rows={rows}
        columns={columns}
        rowKey={(alert) => String(alert.id)}
        onOpen={(alert) => setFilters({ open: String(alert.id) })}
        initialSort={{ key: "severity", descending: false }}
        actions={(alert) => <Actions alert={alert} onAcknowledge={setAcknowledging} onSilence={setSilencing} />}
        empty={
          <EmptyState icon={BellRing} title={t("allQuiet")} hint={t("allQuietHint")}>
            <Button
              variant="default"
              renderRoot={(props) => <Link to="/alerts" search={{ tab: "rules" }} {...props} />}
            >
              {t("seeRules")}
            </Button>
          </EmptyState>
        }
      />
      {acknowledging !== undefined && (
        <AcknowledgeForm alert={acknowledging} onClose={() => setAcknowledging(undefined)} />
      )}
      {silencing !== undefined && (
        <SilenceForm rule={silencing.rule} subject={silencing.subject} onClose={() => setSilencing(undefined)} />
      )}
      {filters.open !== "" && <AlertDrawer id={filters.open} onClose={() => setFilters({ open: "" })} />}
    </Panel>
  );
}

function columnsOf(t: Say<typeof texts>, state: string): Column<AlertView>[] {
  return [
    {
      key: "severity",
      title: t("severity"),
      width: 120,
      sort: (alert) => RANK[alert.severity] ?? 9,
      render: (alert) => <StateBadge state={alert.severity} />,
    },
    { key: "rule", title: t("rule"), sort: (alert) => alert.rule, render: (alert) => alert.rule },
    {
      key: "subject",
      title: t("subject"),
      sort: (alert) => alert.subject,
      render: (alert) => <SubjectLink scope={alert.scope} name={alert.subject} />,
    },
    { key: "text", title: t("what"), wide: true, render: (alert) => <WhatAndNote alert={alert} /> },
    {
      key: "since",
      title: t("since"),
      wide: true,
      sort: (alert) => alert.pending_since,
      render: (alert) => <Moment at={alert.fired_at ?? alert.pending_since} />,
    },
    { key: "state", title: state, wide: true, render: (alert) => <Standing alert={alert} /> },
  ];
}

function Actions({
  alert,
  onAcknowledge,
  onSilence,
}: {
  alert: AlertView;
  onAcknowledge: (alert: AlertView) => void;
  onSilence: (alert: AlertView) => void;
}) {
  const t = useTexts(texts);
  return (
    <>
      <Tooltip label={t("acknowledge")}>
        <ActionIcon
          variant="subtle"
          color="gray"
          aria-label={`${t("acknowledge")}: ${alert.rule} ${alert.subject}`}
          onClick={() => onAcknowledge(alert)}
        >
          <CheckCheck size={16} />
        </ActionIcon>
      </Tooltip>
      <Tooltip label={t("silenceThis")}>
        <ActionIcon
          variant="subtle"
          color="gray"
          aria-label={`${t("silenceThis")}: ${alert.rule} ${alert.subject}`}
          onClick={() => onSilence(alert)}
        >
          <BellOff size={16} />
        </ActionIcon>
      </Tooltip>
    </>
  );
}
