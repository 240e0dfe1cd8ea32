import { Button, Switch } from "@mantine/core";
import { CalendarClock, Plus } from "lucide-react";
import { useMemo } from "react";

import { api, sent, type Schema } from "@/api/client";
import { useAction } from "@/api/useAction";
import { useAll } from "@/api/useAll";
import { useFilters } from "@/app/useFilters";
import { ScheduleForm } from "@/pages/reports/ScheduleForm";
import { useWeekdays } from "@/pages/reports/weekdays";
import { texts } from "@/pages/reports/texts";
import { DataTable, Faint, type Column } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { Moment } from "@/parts/Moment";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { useTexts } from "@/texts/texts";

type ScheduleView = Schema<"ScheduleView">;
const FILTERS = { open: "", create: "" };

export function SchedulesTab() {
  const t = useTexts(texts);
  const [filters, setFilters] = useFilters(FILTERS);
  const { data, error, refetch } = useAll("/report-schedules");
  const columns = useColumns();
  const opened = data?.find((schedule) => schedule.name === filters.open);
  const create = (
    <Button leftSection={<Plus size={15} />} onClick={() => setFilters({ create: "1" })}>
      {t("newSchedule")}
    </Button>
  );
  if (error !== null && data === undefined) return <ProblemNote error={error} onRetry={() => void refetch()} />;
  return (
    <Panel title={t("schedules")} tools={data?.length === 0 ? undefined : create}>
      <DataTable
        label={t("schedules")}
        rows={data}
        columns={columns}
        rowKey={(schedule) => schedule.name}
        onOpen={(schedule) => setFilters({ open: schedule.name })}
        actions={(schedule) => <OnSwitch schedule={schedule} />}
        empty={
          <EmptyState icon={CalendarClock} title={t("noSchedules")} hint={t("noSchedulesHint")}>
            {create}
          </EmptyState>
        }
      />
      {opened !== undefined && (
        <ScheduleForm key={opened.name} schedule={opened} onClose={() => setFilters({ open: "" })} />
      )}
      {filters.create !== "" && <ScheduleForm onClose={() => setFilters({ create: "" })} />}
    </Panel>
  );
}

function useColumns(): Column<ScheduleView>[] {
  const t = useTexts(texts);
  const weekdays = useWeekdays();
  return useMemo(
    () => [
      { key: "name", title: t("name"), sort: (one: ScheduleView) => one.name, render: (one: ScheduleView) => one.name },
      {
        key: "every",
        title: t("every"),
        render: (one: ScheduleView) => (
          <>
            {one.period === "custom" ? one.period : t(one.period)}
            <Faint>
              {t("atHour", {
                weekday: one.period === "weekly" ? (weekdays[one.weekday] ?? "") : "",
                hour: String(one.hour).padStart(2, "0"),
              }).trim()}
            </Faint>
          </>
        ),
      },
      {
        key: "channels",
        title: t("channels"),
        wide: true,
        render: (one: ScheduleView) => one.channels.join(", ") || "–",
      },
      { key: "last", title: t("lastUntil"), wide: true, render: (one: ScheduleView) => <Moment at={one.last_until} /> },
      {
        key: "next",
        title: t("nextRun"),
        sort: (one: ScheduleView) => one.next_run,
        render: (one: ScheduleView) => <Moment at={one.next_run} />,
      },
    ],
    [t, weekdays],
  );
}

function OnSwitch({ schedule }: { schedule: ScheduleView }) {
  const t = useTexts(texts);
  const flip = useAction({
    run: (enabled: boolean) =>
      sent(api.PATCH("/report-schedules/{name}", { params: { path: { name: schedule.name } }, body: { enabled } })),
    touches: ["/report-schedules"],
    optimistic: (cache, enabled) =>
      cache.changeItems<ScheduleView>(
        "/report-schedules",
        (one) => one.name === schedule.name,
        (one) => ({ ...one, enabled }),
      ),
    done: () => t("saved", { name: schedule.name }),
  });
  return (
    <Switch
      size="sm"
      aria-label={t("switch", { name: schedule.name })}
      checked={schedule.enabled}
      onChange={(event) => flip.mutate(event.currentTarget.checked)}
    />
  );
}
