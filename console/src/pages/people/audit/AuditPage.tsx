import { Button, Group, Menu, Text, Tooltip } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { ArrowUp, Download, ScrollText } from "lucide-react";
import { useMemo } from "react";

import { PREFIX } from "@/api/client";
import { usePreferences } from "@/app/preferences";
import { useFilters } from "@/app/useFilters";
import { AuditFilters, FILTERS } from "@/pages/people/audit/AuditFilters";
import { brief, nounOf } from "@/pages/people/audit/detail";
import { EventDrawer } from "@/pages/people/audit/EventDrawer";
import { useEvents, type EventView, type Where } from "@/pages/people/audit/useEvents";
import { texts } from "@/pages/people/audit/texts";
import { DataTable, NothingFound, type Column } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { Moment } from "@/parts/Moment";
import { PageHeader } from "@/parts/PageHeader";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { SubjectLink } from "@/parts/SubjectLink";
import { common } from "@/texts/common";
import { useFormat } from "@/texts/format";
import { navigation } from "@/texts/navigation";
import { useTexts } from "@/texts/texts";

export default function AuditPage() {
  const page = useTexts(navigation);
  const t = useTexts(texts);
  const c = useTexts(common);
  const [filters, setFilters] = useFilters(FILTERS);
  const [where, isFiltered] = useWhere();
  const found = useEvents(where);
  const columns = useColumns();
  const opened = found.items?.find((event) => String(event.id) === filters.open);
  return (
    <>
      <PageHeader title={page("audit")}>
        <ExportMenu where={where} />
      </PageHeader>
      <Panel p={0}>
        <AuditFilters />
        {found.fresh > 0 && (
          <Group justify="center" pb="xs" role="status">
            <Button variant="light" radius="xl" leftSection={<ArrowUp size={14} />} onClick={found.showFresh}>
              {t("newOnes", { n: found.fresh })}
            </Button>
          </Group>
        )}
        {found.error !== null && found.items === undefined ? (
          <ProblemNote error={found.error} onRetry={found.retry} />
        ) : (
          <DataTable
            label={page("audit")}
            rows={found.items}
            columns={columns}
            rowKey={(event) => String(event.id)}
            onOpen={(event) => setFilters({ open: String(event.id) })}
            empty={
              isFiltered ? (
                <NothingFound />
              ) : (
                <EmptyState icon={ScrollText} title={t("nothing")} hint={t("nothingHint")} />
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
      </Panel>
      {opened !== undefined && (
        <EventDrawer
          event={opened}
          onClose={() => setFilters({ open: "" })}
          onNarrow={(change) => setFilters({ ...change, open: "" })}
        />
      )}
    </>
  );
}

function useWhere(): [Where, boolean] {
  const [filters] = useFilters(FILTERS);
  const [typed] = useDebouncedValue(filters, 300);
  const { actor, action, subject, since, until, q } = typed;
  return useMemo(() => {
    const given = Object.entries({ actor, action, subject, since, until, q }).filter(
      ([, value]) => value.trim() !== "",
    );
    const where: Where = Object.fromEntries(given.map(([name, value]) => [name, value.trim()]));
    return [where, given.length > 0];
  }, [actor, action, subject, since, until, q]);
}

function useColumns(): Column<EventView>[] {
  const t = useTexts(texts);
  const { language } = usePreferences();
  const format = useFormat();
  return useMemo(
    () => [
      { key: "at", title: t("at"), width: 130, render: (event: EventView) => <Moment at={event.at} /> },
      {
        key: "actor",
        title: t("actor"),
        render: (event: EventView) => (
          <Text size="sm" c={event.actor === "corral" ? "dimmed" : undefined} style={{ whiteSpace: "nowrap" }}>
            {event.actor}
          </Text>
        ),
      },
      { key: "action", title: t("action"), render: (event: EventView) => <code>{event.action}</code> },
      {
        key: "subject",
        title: t("subject"),
        render: (event: EventView) => <SubjectLink scope={nounOf(event)} name={event.subject} />,
      },
      {
        key: "detail",
        title: t("detail"),
        wide: true,
        render: (event: EventView) => (
          <Text size="xs" c="dimmed" lineClamp={1} style={{ whiteSpace: "normal", overflowWrap: "anywhere" }}>
            {brief(event, language, format)}
          </Text>
        ),
      },
      { key: "source", title: t("source"), wide: true, render: (event: EventView) => event.source },
    ],
    [t, language, format],
  );
}

function ExportMenu({ where }: { where: Where }) {
  const t = useTexts(texts);
  const query = (format: string) => `${PREFIX}/events/export?${new URLSearchParams({ ...where, format }).toString()}`;
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Tooltip label={t("exportHint")}>
          <Button variant="default" leftSection={<Download size={15} />}>
            {t("export")}
          </Button>
        </Tooltip>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item component="a" href={query("csv")} download="corral-events.csv">
          {t("exportCsv")}
        </Menu.Item>
        <Menu.Item component="a" href={query("jsonl")} download="corral-events.jsonl">
          {t("exportJsonl")}
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
