/**
 * The one table of the console: sorting, selection with batch actions, actions per row, skeletons, an empty state, and only
 * the rows in sight in the page when there are many. Rows open by their link in the first column; a click anywhere is the same.
 * Its menu chooses columns, downloads CSV and saves views; order and columns are in the address.
 */
import { Box, Checkbox, Group, Skeleton, Table, Text, UnstyledButton } from "@mantine/core";
import { Link, useRouter } from "@tanstack/react-router";
import { ChevronDown, ChevronUp, SearchX } from "lucide-react";
import { memo, useCallback, useLayoutEffect, useMemo, useRef, useState, type MouseEvent, type ReactNode } from "react";

import { problemOf } from "@/api/problem";
import { EmptyState } from "@/parts/EmptyState";
import classes from "@/parts/DataTable.module.css";
import { CsvExport } from "@/parts/table/CsvExport";
import { inOrder } from "@/parts/table/order";
import { TableMenu } from "@/parts/table/TableMenu";
import { useTableView } from "@/parts/table/useTableView";
import { toastProblem } from "@/parts/toasts";
import { useRowWindow } from "@/parts/useRowWindow";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

export interface Column<T> {
  readonly key: string;
  readonly title: string;
  readonly render: (row: T) => ReactNode;
  /** With it the column can be sorted here; nulls go last. */
  readonly sort?: (row: T) => string | number | null;
  /** Numbers stand at the right. */
  readonly numeric?: boolean;
  /** Left out on narrow screens. */
  readonly wide?: boolean;
  readonly width?: number | string;
}

export interface Sorting {
  readonly key: string;
  readonly descending: boolean;
}

export interface DataTableProps<T> {
  /** The name of the table, for screen readers. */
  readonly label: string;
  /** Undefined while they are loading. */
  readonly rows: readonly T[] | undefined;
  readonly columns: readonly Column<T>[];
  readonly rowKey: (row: T) => string;
  /** Where a row leads. */
  readonly href?: (row: T) => string;
  readonly onOpen?: (row: T) => void;
  /** Buttons or a menu at the end of a row. */
  readonly actions?: (row: T) => ReactNode;
  readonly empty?: ReactNode;
  /** Chosen rows by key; with it rows can be chosen. */
  readonly selected?: ReadonlySet<string>;
  readonly onSelect?: (selected: ReadonlySet<string>) => void;
  /** Sorting done elsewhere (by the server): the present one and how to change it. */
  readonly sorting?: Sorting;
  readonly onSort?: (sorting: Sorting) => void;
  readonly initialSort?: Sorting;
  /** Below the rows, such as a button that loads more. */
  readonly foot?: ReactNode;
  /** Every row, for the CSV of a table that has loaded some of them only. */
  readonly loadAll?: () => Promise<readonly T[]>;
  /** False where the page has a list of views of its own. */
  readonly hasViews?: boolean;
}

const SKELETONS = 6;

export function DataTable<T>(props: DataTableProps<T>) {
  const { rows, rowKey } = props;
  const view = useTableView(props.columns, props.initialSort);
  const columns = view.shown;
  const sorting = props.onSort === undefined ? view.sorting : props.sorting;
  const sorted = useMemo(
    () => (rows === undefined ? undefined : props.onSort === undefined ? inOrder(rows, props.columns, sorting) : rows),
    [rows, props.columns, sorting, props.onSort],
  );
  // The same function always, so that choosing one row does not draw the others again.
  const choice = useRef({ selected: props.selected, onSelect: props.onSelect });
  useLayoutEffect(() => {
    choice.current = { selected: props.selected, onSelect: props.onSelect };
  });
  const choose = useCallback((key: string) => {
    const next = new Set(choice.current.selected);
    if (!next.delete(key)) next.add(key);
    choice.current.onSelect?.(next);
  }, []);
  const shown = useRowWindow(sorted?.length ?? 0);
  if (sorted !== undefined && sorted.length === 0) return props.empty ?? <NothingFound />;
  const width = columns.length + (props.selected === undefined ? 0 : 1) + (props.actions === undefined ? 0 : 1);
  return (
    <Box className={classes.frame}>
      {sorted !== undefined && <Tools {...props} rows={sorted} view={view} />}
      <Box className={classes.scroller} ref={shown.scroller}>
        <Table
          className={classes.table}
          aria-label={props.label}
          aria-rowcount={sorted?.length ?? -1}
          aria-busy={sorted === undefined}
          highlightOnHover
          verticalSpacing={0}
        >
          <Head {...props} columns={columns} rows={sorted} sorting={sorting} onSort={props.onSort ?? view.onSort} />
          <Table.Tbody>
            {sorted === undefined && <SkeletonRows columns={width} />}
            {shown.before > 0 && <Spacer height={shown.before} columns={width} />}
            {sorted?.slice(shown.first, shown.last).map((row) => (
              <Row
                key={rowKey(row)}
                row={row}
                columns={columns}
                rowKey={rowKey}
                href={props.href}
                onOpen={props.onOpen}
                actions={props.actions}
                isChosen={props.selected?.has(rowKey(row))}
                onChoose={choose}
              />
            ))}
            {shown.after > 0 && <Spacer height={shown.after} columns={width} />}
          </Table.Tbody>
        </Table>
        {props.foot}
      </Box>
    </Box>
  );
}

/** The menu of the table, and the CSV while it is written. */
function Tools<T>(props: DataTableProps<T> & { rows: readonly T[]; view: ReturnType<typeof useTableView<T>> }) {
  const { view } = props;
  const [written, setWritten] = useState<readonly T[]>();
  const onDone = useCallback(() => setWritten(undefined), []);
  function write() {
    if (props.loadAll === undefined) setWritten(props.rows);
    else props.loadAll().then(setWritten, (problem: unknown) => toastProblem(problemOf(problem)));
  }
  return (
    <>
      <TableMenu
        label={props.label}
        columns={props.columns}
        shown={view.shown.map((column) => column.key)}
        onShow={view.onShow}
        onCsv={write}
        isWriting={written !== undefined}
        view={props.onSort === undefined ? { sort: view.sort, hide: view.hidden } : { hide: view.hidden }}
        hasViews={props.hasViews !== false}
      />
      {written !== undefined && <CsvExport name={props.label} rows={written} columns={view.shown} onDone={onDone} />}
    </>
  );
}

function Head<T>({
  rows,
  columns,
  rowKey,
  selected,
  onSelect,
  actions,
  sorting,
  onSort,
}: DataTableProps<T> & { onSort: (sorting: Sorting) => void }) {
  const t = useTexts(common);
  const all =
    rows !== undefined && selected !== undefined && rows.length > 0 && rows.every((row) => selected.has(rowKey(row)));
  return (
    <Table.Thead className={classes.head}>
      <Table.Tr>
        {selected !== undefined && (
          <Table.Th w={36}>
            <Checkbox
              size="xs"
              aria-label={t("selectAll")}
              checked={all}
              indeterminate={!all && selected.size > 0}
              onChange={() => onSelect?.(all ? new Set() : new Set(rows?.map(rowKey)))}
            />
          </Table.Th>
        )}
        {columns.map((column) => (
          <Table.Th
            key={column.key}
            w={column.width}
            className={column.wide ? classes.wide : undefined}
            data-last={actions === undefined && column === columns.at(-1) ? true : undefined}
            ta={column.numeric ? "right" : undefined}
            aria-sort={ariaSort(column.key, sorting)}
          >
            {column.sort === undefined ? (
              column.title
            ) : (
              <UnstyledButton
                className={classes.sort}
                title={t("sortBy", { name: column.title })}
                onClick={() =>
                  onSort({ key: column.key, descending: sorting?.key === column.key && !sorting.descending })
                }
              >
                <Group gap={3} wrap="nowrap" justify={column.numeric ? "flex-end" : "flex-start"} component="span">
                  <span>{column.title}</span>
                  {sorting?.key === column.key &&
                    (sorting.descending ? <ChevronDown size={13} aria-hidden /> : <ChevronUp size={13} aria-hidden />)}
                </Group>
              </UnstyledButton>
            )}
          </Table.Th>
        ))}
        {actions !== undefined && (
          <Table.Th w={56} ta="right">
            <span className="visually-hidden">{t("actions")}</span>
          </Table.Th>
        )}
      </Table.Tr>
    </Table.Thead>
  );
}

interface RowProps<T> extends Pick<DataTableProps<T>, "columns" | "rowKey" | "href" | "onOpen" | "actions"> {
  readonly row: T;
  /** Undefined where rows cannot be chosen. */
  readonly isChosen: boolean | undefined;
  readonly onChoose: (key: string) => void;
}

/** Drawn again only when it changes itself: a list that is live gets the same rows again and again. */
const Row = memo(PlainRow) as typeof PlainRow;

function PlainRow<T>({ row, columns, rowKey, href, onOpen, isChosen, onChoose, actions }: RowProps<T>) {
  const t = useTexts(common);
  const router = useRouter();
  const key = rowKey(row);
  const opens = href !== undefined || onOpen !== undefined;
  function open(event: MouseEvent) {
    // Links, buttons and boxes inside the row mean themselves; so does text that is being marked.
    if (event.target instanceof Element && event.target.closest("a, button, input, label, [role=menu]") !== null)
      return;
    if (window.getSelection()?.isCollapsed === false) return;
    if (onOpen !== undefined) onOpen(row);
    else if (href !== undefined) router.history.push(href(row));
  }
  return (
    <Table.Tr
      className={classes.row}
      data-key={key}
      onClick={opens ? open : undefined}
      style={opens ? { cursor: "pointer" } : undefined}
    >
      {isChosen !== undefined && (
        <Table.Td>
          <Checkbox
            size="xs"
            aria-label={t("selectRow", { name: key })}
            checked={isChosen}
            onChange={() => onChoose(key)}
          />
        </Table.Td>
      )}
      {columns.map((column, index) => (
        <Table.Td
          key={column.key}
          className={[column.wide ? classes.wide : "", column.numeric ? "num" : ""].join(" ")}
          ta={column.numeric ? "right" : undefined}
        >
          {index > 0 || !opens ? (
            column.render(row)
          ) : (
            <Opener row={row} href={href} onOpen={onOpen} content={column.render(row)} />
          )}
        </Table.Td>
      ))}
      {actions !== undefined && (
        <Table.Td ta="right">
          <Group gap={2} justify="flex-end" wrap="nowrap">
            {actions(row)}
          </Group>
        </Table.Td>
      )}
    </Table.Tr>
  );
}

function Opener<T>({
  row,
  href,
  onOpen,
  content,
}: {
  row: T;
  href?: (row: T) => string;
  onOpen?: (row: T) => void;
  content: ReactNode;
}) {
  if (href !== undefined && onOpen === undefined) {
    return (
      <Link to={href(row)} className={classes.link}>
        {content}
      </Link>
    );
  }
  return (
    <UnstyledButton className={classes.link} onClick={() => onOpen?.(row)}>
      {content}
    </UnstyledButton>
  );
}

function SkeletonRows({ columns }: { columns: number }) {
  return Array.from({ length: SKELETONS }, (_, row) => (
    <Table.Tr key={row} className={classes.row}>
      {Array.from({ length: columns }, (_, column) => (
        <Table.Td key={column}>
          <Skeleton h={12} w={`${50 + ((row * 7 + column * 13) % 40)}%`} />
        </Table.Td>
      ))}
    </Table.Tr>
  ));
}

function Spacer({ height, columns }: { height: number; columns: number }) {
  return (
    <Table.Tr aria-hidden>
      <Table.Td colSpan={columns} style={{ height, padding: 0, border: 0 }} />
    </Table.Tr>
  );
}

export function NothingFound() {
  const t = useTexts(common);
  return <EmptyState icon={SearchX} title={t("nothingFound")} hint={t("nothingFoundHint")} />;
}

/** A second, fainter line in a cell. */
export function Faint({ children }: { children: ReactNode }) {
  return (
    <Text size="xs" c="dimmed" component="div" truncate>
      {children}
    </Text>
  );
}

function ariaSort(key: string, sorting: Sorting | undefined): "ascending" | "descending" | undefined {
  if (sorting?.key !== key) return undefined;
  return sorting.descending ? "descending" : "ascending";
}
