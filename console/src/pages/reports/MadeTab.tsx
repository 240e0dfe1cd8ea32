/** The reports that were made, newest first; the open one is shown beside them. */
import { Button, Group, Loader } from "@mantine/core";
import { FileText, Plus } from "lucide-react";
import { useMemo } from "react";

import type { Schema } from "@/api/client";
import { usePages } from "@/api/useAll";
import { useFilters } from "@/app/useFilters";
import { Preview } from "@/pages/reports/Preview";
import { ReportForm } from "@/pages/reports/ReportForm";
import { texts } from "@/pages/reports/texts";
import { DataTable, Faint, type Column } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { Moment } from "@/parts/Moment";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { StateBadge } from "@/parts/StateBadge";
import { common } from "@/texts/common";
import { useFormat, type Format } from "@/texts/format";
import { useTexts, type Say } from "@/texts/texts";

export type ReportView = Schema<"ReportView">;
const FILTERS = { open: "", create: "" };

export function MadeTab() {
  const t = useTexts(texts);
  const c = useTexts(common);
  const format = useFormat();
  const [filters, setFilters] = useFilters(FILTERS);
  const found = usePages("/reports", { limit: 50 });
  const columns = useMemo(() => columnsOf(t, format, c("state"), c("created")), [t, format, c]);
  const create = (
    <Button leftSection={<Plus size={15} />} onClick={() => setFilters({ create: "1" })}>
      {t("newReport")}
    </Button>
  );
  if (found.error !== null && found.items === undefined)
    return <ProblemNote error={found.error} onRetry={found.retry} />;
  return (
    <Panel title={t("made")} tools={found.items?.length === 0 ? undefined : create}>
      <DataTable
        label={t("made")}
        rows={found.items}
        columns={columns}
        rowKey={(report) => report.id}
        onOpen={(report) => setFilters({ open: report.id })}
        empty={
          <EmptyState icon={FileText} title={t("noReports")} hint={t("noReportsHint")}>
            {create}
          </EmptyState>
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
      {filters.create !== "" && (
        <ReportForm
          onClose={() => setFilters({ create: "" })}
          onMade={(report) => setFilters({ create: "", open: report.id })}
        />
      )}
      {filters.open !== "" && <Preview id={filters.open} onClose={() => setFilters({ open: "" })} />}
    </Panel>
  );
}

function columnsOf(t: Say<typeof texts>, format: Format, state: string, created: string): Column<ReportView>[] {
  return [
    { key: "title", title: t("title"), render: (report) => report.title },
    {
      key: "period",
      title: t("period"),
      wide: true,
      render: (report) => (
        <>
          {format.dateTime(report.since)}
          <Faint>{format.dateTime(report.until)}</Faint>
        </>
      ),
    },
    {
      key: "state",
      title: state,
      render: (report) => (
        <Group gap={6} wrap="nowrap">
          <StateBadge state={report.state} />
          {report.state === "working" && <Loader size={14} aria-hidden />}
        </Group>
      ),
    },
    {
      key: "by",
      title: t("by"),
      wide: true,
      render: (report) => (report.schedule === null ? report.created_by : t("bySchedule", { name: report.schedule })),
    },
    { key: "created", title: created, wide: true, render: (report) => <Moment at={report.created_at} /> },
  ];
}
