/** Maintenance windows. All users read them; operators plan them, with a preview of the jobs that are displaced. */
import { Switch } from "@mantine/core";
import { Wrench } from "lucide-react";
import { useMemo } from "react";

import { useAll } from "@/api/useAll";
import { useIsOperator } from "@/app/session";
import { useFilters } from "@/app/useFilters";
import { MaintenanceForm } from "@/pages/scheduling/maintenance/MaintenanceForm";
import { texts } from "@/pages/scheduling/maintenance/texts";
import { useDeleteWindow } from "@/pages/scheduling/maintenance/useMaintenanceAdmin";
import { PERIODS, type MaintenanceWindow } from "@/pages/scheduling/maintenance/window";
import { CatalogPage } from "@/parts/CatalogPage";
import { Faint, type Column } from "@/parts/DataTable";
import { StateBadge } from "@/parts/StateBadge";
import { common } from "@/texts/common";
import { useFormat } from "@/texts/format";
import { navigation } from "@/texts/navigation";
import { useTexts } from "@/texts/texts";

/** `over`: whether past windows are listed; `nodes`: those of a new window. */
const FILTERS = { over: "", nodes: "" };
const BY_TIME = { key: "when", descending: false };

export default function MaintenancePage() {
  const t = useTexts(texts);
  const n = useTexts(navigation);
  const isOperator = useIsOperator();
  const [filters, setFilters] = useFilters(FILTERS);
  const all = useAll("/maintenance-windows");
  const remove = useDeleteWindow();
  const listed = useMemo(
    () => all.data?.filter((one) => filters.over !== "" || one.state !== "over"),
    [all.data, filters.over],
  );
  return (
    <CatalogPage
      title={n("maintenance")}
      detail={t("detail")}
      createLabel={t("create")}
      canEdit={isOperator}
      query={all}
      shown={listed}
      tools={
        <Switch
          size="xs"
          label={t("withOver")}
          checked={filters.over !== ""}
          onChange={(event) => setFilters({ over: event.currentTarget.checked ? "yes" : "" })}
        />
      }
      columns={useColumns()}
      initialSort={BY_TIME}
      empty={{ icon: Wrench, title: t("empty"), hint: t("emptyHint") }}
      menuLabel={(name) => t("menuOf", { name })}
      onDelete={([window]) => window !== undefined && remove(window)}
      form={({ row, taken, onClose }) => (
        <MaintenanceForm
          key={row?.name}
          window={row}
          taken={taken}
          nodes={filters.nodes === "" ? [] : filters.nodes.split(",")}
          onClose={onClose}
        />
      )}
    />
  );
}

function useColumns(): readonly Column<MaintenanceWindow>[] {
  const t = useTexts(texts);
  const c = useTexts(common);
  const format = useFormat();
  return useMemo(() => {
    const when = (one: MaintenanceWindow) =>
      t("fromUntil", { from: format.dayTime(one.since), until: format.dayTime(one.until) });
    const repeated = ({ every_days: days }: MaintenanceWindow) => {
      const period = PERIODS.find((one) => one === String(days ?? ""));
      return period === undefined ? t("everyDays", { n: days ?? 0 }) : t(`every_${period}`);
    };
    const isUnderWay = (one: MaintenanceWindow) => one.state === "draining" || one.state === "active";
    return [
      {
        key: "name",
        title: c("name"),
        sort: (one) => one.name,
        render: (one) => (
          <>
            {one.name}
            {one.note !== "" && <Faint>{one.note}</Faint>}
          </>
        ),
      },
      {
        key: "state",
        title: c("state"),
        sort: (one) => one.state,
        render: (one) => (
          <>
            <StateBadge state={one.state} />
            {isUnderWay(one) && (
              <Faint>{one.nodes_left.length === 0 ? t("allEmpty") : t("left", { n: one.nodes_left.length })}</Faint>
            )}
          </>
        ),
      },
      {
        key: "nodes",
        title: t("nodes"),
        sort: (one) => one.nodes.length,
        render: (one) => (
          <>
            {t("nodeCount", { n: one.nodes.length })}
            <Faint>{one.nodes.join(", ")}</Faint>
          </>
        ),
      },
      { key: "when", title: t("when"), sort: (one) => one.since, render: when },
      { key: "repeats", title: t("repeats"), wide: true, sort: (one) => one.every_days ?? 0, render: repeated },
      {
        key: "drains",
        title: t("drains"),
        wide: true,
        sort: (one) => one.drains_at,
        render: (one) => format.dayTime(one.drains_at),
      },
    ];
  }, [t, c, format]);
}
