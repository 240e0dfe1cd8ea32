/** GPUs that are set aside: on a calendar and as a list. Everyone reads it; operators change it. */
import { Button, Group, Stack } from "@mantine/core";
import { Plus } from "lucide-react";
import { useMemo } from "react";

import { useAll } from "@/api/useAll";
import { useIsOperator } from "@/app/session";
import { useFilters } from "@/app/useFilters";
import { Calendar } from "@/pages/scheduling/reservations/Calendar";
import { dayOf, SPANS, stripOf } from "@/pages/scheduling/reservations/calendar";
import { ReservationDrawer } from "@/pages/scheduling/reservations/ReservationDrawer";
import { ReservationForm } from "@/pages/scheduling/reservations/ReservationForm";
import { ReservationTable } from "@/pages/scheduling/reservations/ReservationTable";
import { useDeleteReservation } from "@/pages/scheduling/reservations/useReservationAdmin";
import { texts } from "@/pages/scheduling/reservations/texts";
import { FilterSelect } from "@/parts/FilterSelect";
import { useNow } from "@/parts/Moment";
import { PageHeader } from "@/parts/PageHeader";
import { ProblemNote } from "@/parts/ProblemNote";
import { common } from "@/texts/common";
import { navigation } from "@/texts/navigation";
import { useTexts } from "@/texts/texts";

/** `from` is the week that is shown first; `open` is looked at, `edit` changed, `new` being made. */
const FILTERS = { from: "", span: "14", pool: "", over: "", open: "", edit: "", new: "" };

export default function ReservationsPage() {
  const t = useTexts(texts);
  const c = useTexts(common);
  const n = useTexts(navigation);
  const isOperator = useIsOperator();
  const [filters, setFilters] = useFilters(FILTERS);
  const { data: all, error, refetch } = useAll("/reservations");
  const close = () => setFilters({ open: "", edit: "", new: "" });
  const remove = useDeleteReservation(close);
  const span = SPANS.find((one) => one === filters.span) ?? "14";
  const strip = useStrip(filters.from, span);
  const pools = [...new Set(all?.map((one) => one.pool))].sort();
  const shown = useMemo(
    () => (filters.pool === "" ? all : all?.filter((one) => one.pool === filters.pool)),
    [all, filters.pool],
  );
  const open = all?.find((one) => one.name === filters.open);
  const edited = isOperator ? all?.find((one) => one.name === filters.edit) : undefined;
  return (
    <>
      <PageHeader title={n("reservations")} detail={t("detail")}>
        {isOperator && (
          <Button leftSection={<Plus size={15} />} onClick={() => setFilters({ new: "yes", open: "", edit: "" })}>
            {t("create")}
          </Button>
        )}
      </PageHeader>
      {error !== null && all === undefined ? (
        <ProblemNote error={error} onRetry={() => void refetch()} />
      ) : (
        <Stack gap="sm">
          {pools.length > 1 && (
            <Group gap="xs">
              <FilterSelect
                label={c("pool")}
                everything={t("allPools")}
                options={pools}
                value={filters.pool}
                onChange={(pool) => setFilters({ pool })}
              />
            </Group>
          )}
          <Calendar
            reservations={shown}
            strip={strip}
            span={span}
            onMove={setFilters}
            onOpen={(name) => setFilters({ open: name })}
          />
          <ReservationTable
            reservations={shown}
            withOver={filters.over !== ""}
            onWithOver={(withOver) => setFilters({ over: withOver ? "yes" : "" })}
            onOpen={(name) => setFilters({ open: name })}
            onEdit={(name) => setFilters({ edit: name })}
            onDelete={remove}
          />
        </Stack>
      )}
      {open !== undefined && (
        <ReservationDrawer
          reservation={open}
          onEdit={() => setFilters({ open: "", edit: open.name })}
          onDelete={() => remove(open)}
          onClose={close}
        />
      )}
      {filters.new !== "" && isOperator && all !== undefined && (
        <ReservationForm reservation={undefined} taken={all.map((one) => one.name)} onClose={close} />
      )}
      {edited !== undefined && <ReservationForm key={edited.name} reservation={edited} taken={[]} onClose={close} />}
    </>
  );
}

/** The same object as long as it shows the same days. */
function useStrip(from: string, span: string) {
  const now = useNow();
  const today = new Date(now);
  const day = dayOf(from, today).toDateString();
  return useMemo(() => stripOf(new Date(day), Number(span)), [day, span]);
}
