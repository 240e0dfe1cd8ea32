/**
 * The page of a list of named things, such as queues, users and reservations: a button that creates one, a table whose rows
 * open the form (or a drawer), a menu in each row, and actions on several rows at once. The address keeps what is open:
 * `new` (any value) and `edit` a form, `open` a drawer (the form where there is none), `view` the list or the board.
 */
import { Button, SegmentedControl, Skeleton } from "@mantine/core";
import { Pencil, Plus, Trash2, type LucideIcon } from "lucide-react";
import { useState, type ReactNode } from "react";

import type { Loaded } from "@/api/together";
import { useFilters } from "@/app/useFilters";
import { BatchBar } from "@/parts/BatchBar";
import { DataTable, type Column, type Sorting } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { PageHeader } from "@/parts/PageHeader";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { RowMenu, type RowAction } from "@/parts/RowMenu";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

const FILTERS = { view: "list", open: "", edit: "", new: "" };
const CLOSED = { open: "", edit: "", new: "" };
const BY_NAME: Sorting = { key: "name", descending: false };

interface Named {
  readonly name: string;
}

export interface FormProps<T> {
  /** The row to edit; undefined for a new one. */
  readonly row: T | undefined;
  /** Names that a new one cannot have. */
  readonly taken: readonly string[];
  readonly onClose: () => void;
}

export interface DrawerProps<T> {
  readonly name: string;
  /** Undefined if there is no row of this name. */
  readonly row: T | undefined;
  readonly onEdit: () => void;
  readonly onClose: () => void;
}

interface Board {
  /** The name of the board. */
  readonly label: string;
  readonly content: () => ReactNode;
}

interface CatalogPageProps<T extends Named> {
  readonly title: string;
  readonly detail: string | undefined;
  /** The name of the table for screen readers; the title if it is missing. */
  readonly label?: string;
  readonly createLabel: string;
  /** Whether the viewer may create, edit and delete. */
  readonly canEdit?: boolean;
  /** Before the button that creates one. */
  readonly tools?: ReactNode;
  readonly query: Loaded<readonly T[]>;
  /** Between the header and the table, such as filters. */
  readonly above?: ReactNode;
  /** Another view of the rows, to be chosen instead of the table. */
  readonly board?: Board;
  /** The rows that fit the filters; all of them without this. */
  readonly shown?: readonly T[] | undefined;
  /** The title of the panel around the table, and what stands beside it. */
  readonly panel?: { readonly title: string; readonly tools: ReactNode };
  readonly columns: readonly Column<T>[];
  readonly initialSort?: Sorting;
  readonly empty?: { readonly icon: LucideIcon; readonly title: string; readonly hint: string };
  readonly menuLabel: (name: string) => string;
  /** Actions of a row between "edit" and "delete". */
  readonly actions?: (row: T) => readonly RowAction[];
  /** All actions of a row, instead of these. */
  readonly menu?: (row: T) => readonly RowAction[];
  readonly onDelete?: (rows: readonly T[]) => void;
  /** Why a row cannot be deleted now. */
  readonly refusal?: (row: T) => string | undefined;
  /** Whether several rows can be selected and deleted together. */
  readonly canSelect?: boolean;
  /** Why these of the selected rows cannot be deleted. */
  readonly batchRefusal?: (names: string) => string;
  /** The actions on the selected rows, instead of deleting them. */
  readonly batch?: (chosen: readonly T[], onClear: () => void) => ReactNode;
  readonly form: (props: FormProps<T>) => ReactNode;
  /** Shows one row; without it a row opens its form. */
  readonly drawer?: (props: DrawerProps<T>) => ReactNode;
}

export function CatalogPage<T extends Named>(props: CatalogPageProps<T>) {
  const { query, board, canEdit = true } = props;
  const [filters, setFilters] = useFilters(FILTERS);
  const onClose = () => setFilters(CLOSED);
  const onCreate = () => setFilters({ ...CLOSED, new: "yes" });
  return (
    <>
      <PageHeader title={props.title} detail={props.detail}>
        {board !== undefined && (
          <ViewSwitch board={board} value={filters.view} onChange={(view) => setFilters({ view })} />
        )}
        {props.tools}
        {canEdit && (
          <Button leftSection={<Plus size={15} />} onClick={onCreate}>
            {props.createLabel}
          </Button>
        )}
      </PageHeader>
      {query.error !== null && query.data === undefined ? (
        <ProblemNote error={query.error} onRetry={() => void query.refetch()} />
      ) : board === undefined || filters.view !== "board" ? (
        <CatalogTable
          {...props}
          onCreate={canEdit ? onCreate : undefined}
          onOpen={(open) => setFilters({ ...CLOSED, open })}
          onEdit={canEdit ? (edit) => setFilters({ ...CLOSED, edit }) : undefined}
        />
      ) : query.data === undefined ? (
        <Skeleton h={360} />
      ) : (
        board.content()
      )}
      {query.data !== undefined && <Opened {...props} rows={query.data} onClose={onClose} />}
    </>
  );
}

function ViewSwitch({ board, value, onChange }: { board: Board; value: string; onChange: (view: string) => void }) {
  const c = useTexts(common);
  return (
    <SegmentedControl
      size="xs"
      aria-label={c("view")}
      value={value}
      onChange={onChange}
      data={[
        { value: "list", label: c("list") },
        { value: "board", label: board.label },
      ]}
    />
  );
}

/** The form or the drawer that the address names. */
function Opened<T extends Named>({
  rows,
  form,
  drawer,
  canEdit = true,
  onClose,
}: Pick<CatalogPageProps<T>, "form" | "drawer" | "canEdit"> & { rows: readonly T[]; onClose: () => void }) {
  const [filters, setFilters] = useFilters(FILTERS);
  const named = (name: string) => rows.find((row) => row.name === name);
  if (canEdit && filters.new !== "") return form({ row: undefined, taken: rows.map((row) => row.name), onClose });
  const edited = named(filters.edit || (drawer === undefined ? filters.open : ""));
  if (canEdit && edited !== undefined) return form({ row: edited, taken: [], onClose });
  if (drawer === undefined || filters.open === "") return null;
  return drawer({
    name: filters.open,
    row: named(filters.open),
    onEdit: () => setFilters({ ...CLOSED, edit: filters.open }),
    onClose,
  });
}

interface CatalogTableProps<T extends Named> extends CatalogPageProps<T> {
  readonly onCreate: (() => void) | undefined;
  readonly onOpen: (name: string) => void;
  readonly onEdit: ((name: string) => void) | undefined;
}

function CatalogTable<T extends Named>(props: CatalogTableProps<T>) {
  const { query, empty, canSelect = props.batch !== undefined } = props;
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const menuOf = useMenu(props);
  const chosen = query.data?.filter((row) => selected.has(row.name)) ?? [];
  const onClear = () => setSelected(new Set());
  const table = (
    <DataTable
      label={props.label ?? props.panel?.title ?? props.title}
      rows={query.data === undefined ? undefined : (props.shown ?? query.data)}
      columns={props.columns}
      rowKey={(row) => row.name}
      onOpen={(row) => props.onOpen(row.name)}
      {...(canSelect && { selected: new Set(chosen.map((row) => row.name)), onSelect: setSelected })}
      initialSort={props.initialSort ?? BY_NAME}
      empty={
        empty && (
          <EmptyState {...empty}>
            {props.onCreate !== undefined && query.data?.length === 0 && (
              <Button onClick={props.onCreate}>{props.createLabel}</Button>
            )}
          </EmptyState>
        )
      }
      actions={menuOf && ((row) => <RowMenu label={props.menuLabel(row.name)} actions={menuOf(row)} />)}
    />
  );
  return (
    <>
      {props.above}
      {canSelect && (props.batch?.(chosen, onClear) ?? <DeleteBar {...props} chosen={chosen} onClear={onClear} />)}
      {props.panel === undefined ? <Panel p={0}>{table}</Panel> : <Panel {...props.panel}>{table}</Panel>}
    </>
  );
}

/** The menu of a row: its own, or editing, the page's actions and deleting. */
function useMenu<T extends Named>({ menu, actions, onEdit, onDelete, refusal }: CatalogTableProps<T>) {
  const c = useTexts(common);
  if (menu !== undefined || onEdit === undefined) return menu;
  return (row: T): readonly RowAction[] => [
    { label: c("edit"), icon: Pencil, onClick: () => onEdit(row.name) },
    ...(actions?.(row) ?? []),
    {
      label: c("delete"),
      icon: Trash2,
      danger: true,
      refusal: refusal?.(row),
      onClick: () => onDelete?.([row]),
    },
  ];
}

function DeleteBar<T extends Named>({
  chosen,
  refusal,
  batchRefusal,
  onDelete,
  onClear,
}: Pick<CatalogPageProps<T>, "refusal" | "batchRefusal" | "onDelete"> & {
  chosen: readonly T[];
  onClear: () => void;
}) {
  const c = useTexts(common);
  const refused = chosen.filter((row) => refusal?.(row) !== undefined).map((row) => row.name);
  return (
    <BatchBar
      count={chosen.length}
      actions={[
        {
          label: c("delete"),
          icon: Trash2,
          danger: true,
          refusal: refused.length > 0 ? batchRefusal?.(refused.join(", ")) : undefined,
          onClick: () => onDelete?.(chosen),
        },
      ]}
      onClear={onClear}
    />
  );
}
