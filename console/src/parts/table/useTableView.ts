/** The order and columns of a table: in the address, so that a link shows the same; columns are also remembered. */
import { useCallback, useMemo, useState } from "react";

import { remember, remembered } from "@/app/storage";
import { useFilters } from "@/app/useFilters";
import type { Column, Sorting } from "@/parts/DataTable";
import { hiddenOf, sortingOf, sortOf, visible } from "@/parts/table/order";

const USUAL = { sort: "", hide: [] as string[] };

export function useTableView<T>(columns: readonly Column<T>[], initialSort: Sorting | undefined) {
  const [filters, setFilters] = useFilters(USUAL);
  // The keys are the same in every language, and no other kind of table has the same ones.
  const place = `columns.${columns.map((column) => column.key).join(",")}`;
  const [kept, setKept] = useState(() => ({ place, keys: remembered(place, areKeys) ?? [] }));
  if (kept.place !== place) setKept({ place, keys: remembered(place, areKeys) ?? [] });
  const hidden = filters.hide.length > 0 ? filters.hide : kept.keys;
  const shown = useMemo(() => visible(columns, hidden), [columns, hidden]);
  const sorting = useMemo(
    () => sortingOf(filters.sort, columns) ?? initialSort,
    // eslint-disable-next-line react-hooks/exhaustive-deps -- pages write the usual order anew with each drawing
    [filters.sort, columns, initialSort?.key, initialSort?.descending],
  );
  const onSort = useCallback(
    (next: Sorting) => setFilters({ sort: sortOf(next, initialSort) }),
    // eslint-disable-next-line react-hooks/exhaustive-deps -- as above
    [setFilters, initialSort?.key, initialSort?.descending],
  );
  const onShow = useCallback(
    (keys: readonly string[]) => {
      const next = hiddenOf(columns, keys, hidden);
      const own = next.filter((key) => columns.some((column) => column.key === key));
      remember(place, own);
      setKept({ place, keys: own });
      setFilters({ hide: next });
    },
    [columns, hidden, place, setFilters],
  );
  return { shown, sorting, sort: filters.sort, hidden, onSort, onShow };
}

function areKeys(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((one) => typeof one === "string");
}
