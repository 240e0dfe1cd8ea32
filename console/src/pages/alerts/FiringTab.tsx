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
import { namesOf, shownAlerts, type ShownAlert } from "@/pages/alerts/groups";
import { AlertFilters } from "@/pages/alerts/AlertFilters";
import { BatchBar } from "@/parts/BatchBar";
import { SilenceForm } from "@/pages/alerts/SilenceForm";
import { texts } from "@/pages/alerts/texts";
import { DataTable, Faint, NothingFound, type Column } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { Moment } from "@/parts/Moment";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { StateBadge } from "@/parts/StateBadge";
import { SubjectLink } from "@/parts/SubjectLink";
import { common } from "@/texts/common";
import { useTexts, type Say } from "@/texts/texts";

const FILTERS = { open: "", q: "", severity: "", rule: "", grouped: "yes" };
const RANK: Readonly<Record<string, number>> = { critical: 0, warning: 1, info: 2 };

export function useFiring() {
  return useAll("/alerts", { state: ["firing", "pending"] });
}

export function FiringTab() {
  const t = useTexts(texts);
  const c = useTexts(common);
  const [filters, setFilters] = useFilters(FILTERS);
  const [acknowledging, setAcknowledging] = useState<readonly AlertView[]>([]);
  const [silencing, setSilencing] = useState<readonly AlertView[]>([]);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const { data, error, refetch } = useFiring();
  const { data: silences } = useAll("/silences");
  // The server reports which alerts were silenced when they fired; a later silence covers them, too, until the next notification.
  const rows = useMemo(
    () => data?.map((alert) => ({ ...alert, silenced: alert.silenced || isCovered(alert, silences ?? []) })),
    [data, silences],
  );
  const shown = useMemo(() => rows && shownAlerts(rows, filters), [rows, filters]);
  const chosen = rows?.filter((alert) => selected.has(String(alert.id))) ?? [];
  function close() {
    setAcknowledging([]);
    setSilencing([]);
    setSelected(new Set());
  }
  const columns = useMemo(() => columnsOf(t, c("state")), [t, c]);
  if (error !== null && data === undefined) return <ProblemNote error={error} onRetry={() => void refetch()} />;
  return (
    <>
      <AlertFilters alerts={rows ?? []} filters={filters} setFilters={setFilters} />
      <BatchBar
        count={chosen.length}
        onClear={() => setSelected(new Set())}
        actions={[
          { label: t("acknowledge"), icon: CheckCheck, onClick: () => setAcknowledging(chosen) },
          { label: t("silenceMany"), icon: BellOff, onClick: () => setSilencing(chosen) },
        ]}
      />
      <Panel p={0}>
        <DataTable
          label={t("firing")}
          rows={shown}
          selected={selected}
          onSelect={setSelected}
          columns={columns}
          rowKey={(alert) => String(alert.id)}
          onOpen={(alert) => setFilters({ open: String(alert.id) })}
          initialSort={{ key: "severity", descending: false }}
          actions={(alert) => (
            <Actions
              alert={alert}
              onAcknowledge={(one) => setAcknowledging([one])}
              onSilence={(one) => setSilencing([one])}
            />
          )}
          empty={
            (rows?.length ?? 0) > 0 ? (
              <NothingFound />
            ) : (
              <EmptyState icon={BellRing} title={t("allQuiet")} hint={t("allQuietHint")}>
                <Button
                  variant="default"
                  renderRoot={(props) => <Link to="/alerts" search={{ tab: "rules" }} {...props} />}
                >
                  {t("seeRules")}
                </Button>
              </EmptyState>
            )
          }
        />
        {acknowledging.length > 0 && <AcknowledgeForm alerts={acknowledging} onClose={close} />}
        {silencing.length > 0 && <SilenceForm alerts={silencing} onClose={close} />}
        {filters.open !== "" && <AlertDrawer id={filters.open} onClose={() => setFilters({ open: "" })} />}
      </Panel>
    </>
  );
}

function columnsOf(t: Say<typeof texts>, state: string): Column<ShownAlert>[] {
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
    {
      key: "text",
      title: t("what"),
      wide: true,
      render: (alert) => (
        <>
          <WhatAndNote alert={alert} />
          {alert.explains.length > 0 && (
            <Faint>{t("explains", { n: alert.explains.length, names: namesOf(alert.explains) })}</Faint>
          )}
        </>
      ),
    },
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
