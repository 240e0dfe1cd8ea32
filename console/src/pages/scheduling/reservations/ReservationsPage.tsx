/** Reserved GPUs, on a calendar and as a list. All users read it; operators change it. */
import { Stack, Switch } from "@mantine/core";
import { CalendarRange } from "lucide-react";
import { useMemo } from "react";

import { useAll } from "@/api/useAll";
import { useIsOperator } from "@/app/session";
import { useFilters } from "@/app/useFilters";
import { Calendar } from "@/pages/scheduling/reservations/Calendar";
import { dayOf, SPANS, stripOf } from "@/pages/scheduling/reservations/calendar";
import { useReservationColumns } from "@/pages/scheduling/reservations/columns";
import { ReservationDrawer } from "@/pages/scheduling/reservations/ReservationDrawer";
import { ReservationForm } from "@/pages/scheduling/reservations/ReservationForm";
import { useDeleteReservation } from "@/pages/scheduling/reservations/useReservationAdmin";
import { texts } from "@/pages/scheduling/reservations/texts";
import { CatalogPage } from "@/parts/CatalogPage";
import FilterSelect from "@/parts/FilterSelect";
import { useNow } from "@/parts/Moment";
import { common } from "@/texts/common";
import { navigation } from "@/texts/navigation";
import { useTexts } from "@/texts/texts";

/** `from`: the first day on the calendar; `over`: whether past reservations are listed. */
const FILTERS = { from: "", span: "14", pool: "", over: "", open: "" };

export default function ReservationsPage() {
  const t = useTexts(texts);
  const c = useTexts(common);
  const n = useTexts(navigation);
  const isOperator = useIsOperator();
  const [filters, setFilters] = useFilters(FILTERS);
  const all = useAll("/reservations");
  const remove = useDeleteReservation(() => setFilters({ open: "" }));
  const span = SPANS.find((one) => one === filters.span) ?? "14";
  const strip = useStrip(filters.from, span);
  const pools = [...new Set(all.data?.map((one) => one.pool))].sort();
  const inPool = useMemo(
    () => all.data?.filter((one) => filters.pool === "" || one.pool === filters.pool),
    [all.data, filters.pool],
  );
  const listed = useMemo(
    () => inPool?.filter((one) => filters.over !== "" || one.state !== "over"),
    [inPool, filters.over],
  );
  return (
    <CatalogPage
      title={n("reservations")}
      detail={t("detail")}
      createLabel={t("create")}
      canEdit={isOperator}
      query={all}
      above={
        <Stack gap="sm" mb="sm" align="stretch">
          {pools.length > 1 && (
            <FilterSelect
              label={c("pool")}
              everything={t("allPools")}
              options={pools}
              value={filters.pool}
              onChange={(pool) => setFilters({ pool })}
            />
          )}
          <Calendar
            reservations={inPool}
            strip={strip}
            span={span}
            onMove={setFilters}
            onOpen={(name) => setFilters({ open: name })}
          />
        </Stack>
      }
      shown={listed}
      panel={{
        title: t("list"),
        tools: (
          <Switch
            size="xs"
            label={t("withOver")}
            checked={filters.over !== ""}
            onChange={(event) => setFilters({ over: event.currentTarget.checked ? "yes" : "" })}
          />
        ),
      }}
      columns={useReservationColumns()}
      initialSort={BY_TIME}
      empty={{ icon: CalendarRange, title: t("empty"), hint: t("emptyHint") }}
      menuLabel={(name) => t("menuOf", { name })}
      onDelete={([reservation]) => reservation !== undefined && remove(reservation)}
      form={({ row, taken, onClose }) => (
        <ReservationForm key={row?.name} reservation={row} taken={taken} onClose={onClose} />
      )}
      drawer={({ row, onEdit, onClose }) =>
        row !== undefined && (
          <ReservationDrawer reservation={row} onEdit={onEdit} onDelete={() => remove(row)} onClose={onClose} />
        )
      }
    />
  );
}

const BY_TIME = { key: "when", descending: false };

/** The same object as long as it shows the same days. */
function useStrip(from: string, span: string) {
  const now = useNow();
  const today = new Date(now);
  const day = dayOf(from, today).toDateString();
  return useMemo(() => stripOf(new Date(day), Number(span)), [day, span]);
}
