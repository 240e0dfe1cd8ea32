/** Every alert that was, newest first, narrowed by filters in the address. */
import { Button, Group, MultiSelect, Select, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { BellRing } from "lucide-react";
import { useMemo } from "react";

import { SEVERITIES } from "@/api/enumerations";
import { useAll, usePages } from "@/api/useAll";
import { useFilters } from "@/app/useFilters";
import { Standing, WhatAndNote, type AlertView } from "@/pages/alerts/alert";
import { AlertDrawer } from "@/pages/alerts/AlertDrawer";
import { texts } from "@/pages/alerts/texts";
import { DataTable, NothingFound, type Column } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { Moment, useNow } from "@/parts/Moment";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { StateBadge } from "@/parts/StateBadge";
import { SubjectLink } from "@/parts/SubjectLink";
import { common, states } from "@/texts/common";
import { parseDuration } from "@/texts/durations";
import { useFormat, type Format } from "@/texts/format";
import { useTexts, type Say } from "@/texts/texts";

const FILTERS = { open: "", rule: "", subject: "", severity: [] as string[], since: "" };
/** Moves on only now and then: each step is another question to the server. */
const STEP_MS = 300_000;

export function HistoryTab() {
  const t = useTexts(texts);
  const c = useTexts(common);
  const format = useFormat();
  const [filters, setFilters] = useFilters(FILTERS);
  const [subject] = useDebouncedValue(filters.subject.trim(), 300);
  const now = useNow();
  const length = parseDuration(filters.since);
  const since =
    filters.since === "" || length === undefined
      ? undefined
      : new Date(Math.floor(now / STEP_MS) * STEP_MS - length * 1000).toISOString();
  const found = usePages("/alerts", {
    rule: filters.rule || undefined,
    subject: subject || undefined,
    severity: filters.severity,
    since,
  });
  const columns = useMemo(() => columnsOf(t, format, c("state")), [t, format, c]);
  const isFiltered =
    filters.rule !== "" || filters.subject !== "" || filters.severity.length > 0 || filters.since !== "";
  return (
    <Panel p={0}>
      <Filters />
      {found.error !== null && found.items === undefined ? (
        <ProblemNote error={found.error} onRetry={found.retry} />
      ) : (
        <DataTable
          label={t("history")}
          rows={found.items}
          columns={columns}
          rowKey={(alert) => String(alert.id)}
          onOpen={(alert) => setFilters({ open: String(alert.id) })}
          empty={
            isFiltered ? (
              <NothingFound />
            ) : (
              <EmptyState icon={BellRing} title={t("noHistory")} hint={t("noHistoryHint")} />
            )
          }
          foot={
            found.hasMore && (
              <Group justify="center" p="sm">
                <Button variant="default" loading={found.isLoadingMore} onClick={found.loadMore}>
                  {c("loadMore")}
                </Button>
              </Group>
            )
          }
        />
      )}
      {filters.open !== "" && <AlertDrawer id={filters.open} onClose={() => setFilters({ open: "" })} />}
    </Panel>
  );
}

function Filters() {
  const t = useTexts(texts);
  const c = useTexts(common);
  const s = useTexts(states);
  const [filters, setFilters] = useFilters(FILTERS);
  const { data: rules } = useAll("/alert-rules");
  const spans = [
    ...[1, 6, 24].map((n) => ({ value: `${n}h`, label: t("lastHours", { n }) })),
    ...[7, 30].map((n) => ({ value: `${n}d`, label: t("lastDays", { n }) })),
  ];
  return (
    <Group gap="xs" p="sm" role="search" aria-label={c("filter")}>
      <Select
        size="xs"
        w={180}
        aria-label={t("rule")}
        placeholder={t("rule")}
        searchable
        clearable
        data={(rules ?? []).map((rule) => rule.name)}
        value={filters.rule || null}
        onChange={(rule) => setFilters({ rule: rule ?? "" })}
      />
      <MultiSelect
        size="xs"
        w={220}
        aria-label={t("severity")}
        placeholder={filters.severity.length === 0 ? t("severity") : undefined}
        clearable
        data={[...SEVERITIES].reverse().map((value) => ({ value, label: s(value) }))}
        value={[...filters.severity]}
        onChange={(severity) => setFilters({ severity })}
      />
      <TextInput
        size="xs"
        w={180}
        aria-label={t("subject")}
        placeholder={t("subject")}
        value={filters.subject}
        onChange={(event) => setFilters({ subject: event.currentTarget.value })}
      />
      <Select
        size="xs"
        w={150}
        aria-label={t("since")}
        placeholder={t("anyTime")}
        clearable
        data={spans}
        value={filters.since || null}
        onChange={(since) => setFilters({ since: since ?? "" })}
      />
    </Group>
  );
}

function columnsOf(t: Say<typeof texts>, format: Format, state: string): Column<AlertView>[] {
  return [
    { key: "severity", title: t("severity"), width: 120, render: (alert) => <StateBadge state={alert.severity} /> },
    { key: "rule", title: t("rule"), render: (alert) => alert.rule },
    {
      key: "subject",
      title: t("subject"),
      render: (alert) => <SubjectLink scope={alert.scope} name={alert.subject} />,
    },
    { key: "text", title: t("what"), wide: true, render: (alert) => <WhatAndNote alert={alert} /> },
    { key: "since", title: t("since"), wide: true, render: (alert) => <Moment at={alert.pending_since} /> },
    {
      key: "lasted",
      title: t("lasted"),
      numeric: true,
      wide: true,
      render: (alert) =>
        alert.resolved_at === null
          ? "–"
          : format.duration((Date.parse(alert.resolved_at) - Date.parse(alert.pending_since)) / 1000),
    },
    { key: "state", title: state, wide: true, render: (alert) => <Standing alert={alert} /> },
  ];
}
