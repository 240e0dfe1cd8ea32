/** The order and the columns of a table, as the address has them: `?sort=-created&hide=image&hide=queue`. */
import type { Column, Sorting } from "@/parts/DataTable";

/** The column and direction of `sort` in the address; undefined if it names none of these columns. */
export function sortingOf<T>(sort: string, columns: readonly Column<T>[]): Sorting | undefined {
  const key = sort.replace(/^-/, "");
  const column = columns.find((one) => one.key === key);
  return column?.sort === undefined ? undefined : { key, descending: sort.startsWith("-") };
}

/** Empty for the order that the table has anyway. */
export function sortOf(sorting: Sorting, usual: Sorting | undefined): string {
  if (sorting.key === usual?.key && sorting.descending === usual.descending) return "";
  return `${sorting.descending ? "-" : ""}${sorting.key}`;
}

/** The first column has the link of the row and always stays. */
export function visible<T>(columns: readonly Column<T>[], hidden: readonly string[]): readonly Column<T>[] {
  if (hidden.length === 0) return columns;
  return columns.filter((column, index) => index === 0 || !hidden.includes(column.key));
}

/** The keys to hide, out of those that are shown. Keys of other tables on the page stay. */
export function hiddenOf<T>(columns: readonly Column<T>[], shown: readonly string[], before: readonly string[]) {
  const others = before.filter((key) => columns.every((column) => column.key !== key));
  return [...others, ...columns.slice(1).flatMap(({ key }) => (shown.includes(key) ? [] : [key]))];
}

export function inOrder<T>(
  rows: readonly T[],
  columns: readonly Column<T>[],
  sorting: Sorting | undefined,
): readonly T[] {
  const value = columns.find((column) => column.key === sorting?.key)?.sort;
  if (value === undefined || sorting === undefined) return rows;
  const direction = sorting.descending ? -1 : 1;
  return [...rows].sort((left, right) => compared(value(left), value(right), direction));
}

const collator = new Intl.Collator(undefined, { numeric: true });

function compared(left: string | number | null, right: string | number | null, direction: number): number {
  if (left === null || right === null) return left === right ? 0 : left === null ? 1 : -1;
  if (typeof left === "number" && typeof right === "number") return direction * (left - right);
  return direction * collator.compare(String(left), String(right));
}
