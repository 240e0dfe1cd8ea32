/**
 * The page of a list of named settings, such as queues and flavors: a button that creates one, a table whose rows open the
 * form, a menu in each row, and deletion of several rows at once. The address keeps which form is open (`new`, `open`).
 */
import { Button } from "@mantine/core";
import type { UseQueryResult } from "@tanstack/react-query";
import { Pencil, Plus, Trash2, type LucideIcon } from "lucide-react";
import { useState, type ReactNode } from "react";

import { useFilters } from "@/app/useFilters";
import { BatchBar } from "@/parts/BatchBar";
import { DataTable, type Column } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { PageHeader } from "@/parts/PageHeader";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { RowMenu, type RowAction } from "@/parts/RowMenu";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

const FILTERS = { open: "", new: "" };

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

interface CatalogPageProps<T extends Named> {
  readonly title: string;
  readonly detail: string;
  /** The name of the table for screen readers; the title if it is missing. */
  readonly label?: string;
  readonly createLabel: string;
  /** Before the button that creates one. */
  readonly tools?: ReactNode;
  readonly query: Pick<UseQueryResult<readonly T[], Error>, "data" | "error" | "refetch">;
  readonly columns: readonly Column<T>[];
  readonly empty?: { readonly icon: LucideIcon; readonly title: string; readonly hint: string };
  readonly menuLabel: (name: string) => string;
  /** Actions of a row between "edit" and "delete". */
  readonly actions?: (row: T) => readonly RowAction[];
  readonly onDelete: (names: readonly string[]) => void;
  /** Why a row cannot be deleted now. */
  readonly refusal?: (row: T) => string | undefined;
  /** Whether several rows can be selected and deleted together. */
  readonly canSelect?: boolean;
  /** Why these of the selected rows cannot be deleted. */
  readonly batchRefusal?: (names: string) => string;
  readonly form: (props: FormProps<T>) => ReactNode;
}

export function CatalogPage<T extends Named>(props: CatalogPageProps<T>) {
  const { query } = props;
  const [filters, setFilters] = useFilters(FILTERS);
  const open = query.data?.find((row) => row.name === filters.open);
  const onClose = () => setFilters({ open: "", new: "" });
  const create = () => setFilters({ new: "yes", open: "" });
  return (
    <>
      <PageHeader title={props.title} detail={props.detail}>
        {props.tools}
        <Button leftSection={<Plus size={15} />} onClick={create}>
          {props.createLabel}
        </Button>
      </PageHeader>
      {query.error !== null && query.data === undefined ? (
        <ProblemNote error={query.error} onRetry={() => void query.refetch()} />
      ) : (
        <CatalogTable {...props} onCreate={create} onEdit={(name) => setFilters({ open: name, new: "" })} />
      )}
      {filters.new !== "" &&
        query.data !== undefined &&
        props.form({ row: undefined, taken: query.data.map((row) => row.name), onClose })}
      {open !== undefined && props.form({ row: open, taken: [], onClose })}
    </>
  );
}

interface CatalogTableProps<T extends Named> extends CatalogPageProps<T> {
  readonly onCreate: () => void;
  readonly onEdit: (name: string) => void;
}

function CatalogTable<T extends Named>({ query, empty, refusal, canSelect, ...props }: CatalogTableProps<T>) {
  const c = useTexts(common);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const chosen = query.data?.filter((row) => selected.has(row.name)) ?? [];
  const names = chosen.map((row) => row.name);
  const refused = chosen.filter((row) => refusal?.(row) !== undefined).map((row) => row.name);
  const remove = { label: c("delete"), icon: Trash2, danger: true };
  return (
    <>
      {canSelect && (
        <BatchBar
          count={chosen.length}
          actions={[
            {
              ...remove,
              refusal: refused.length > 0 ? props.batchRefusal?.(refused.join(", ")) : undefined,
              onClick: () => props.onDelete(names),
            },
          ]}
          onClear={() => setSelected(new Set())}
        />
      )}
      <Panel p={0}>
        <DataTable
          label={props.label ?? props.title}
          rows={query.data}
          columns={props.columns}
          rowKey={(row) => row.name}
          onOpen={(row) => props.onEdit(row.name)}
          {...(canSelect && { selected: new Set(names), onSelect: setSelected })}
          initialSort={{ key: "name", descending: false }}
          empty={
            empty && (
              <EmptyState {...empty}>
                <Button onClick={props.onCreate}>{props.createLabel}</Button>
              </EmptyState>
            )
          }
          actions={(row) => (
            <RowMenu
              label={props.menuLabel(row.name)}
              actions={[
                { label: c("edit"), icon: Pencil, onClick: () => props.onEdit(row.name) },
                ...(props.actions?.(row) ?? []),
                { ...remove, refusal: refusal?.(row), onClick: () => props.onDelete([row.name]) },
              ]}
            />
          )}
        />
      </Panel>
    </>
  );
}
