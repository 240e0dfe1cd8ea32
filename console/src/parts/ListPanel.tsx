/** A list that is small enough to be read at once, in a panel of its own: its rows, or why they could not be read. */
import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";

import { DataTable, type DataTableProps } from "@/parts/DataTable";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";

interface ListPanelProps<T> extends Omit<DataTableProps<T>, "label" | "rows"> {
  readonly title: string;
  /** Above the rows at the right, such as a button that adds one. */
  readonly tools?: ReactNode;
  readonly query: Pick<UseQueryResult<readonly T[]>, "data" | "error" | "refetch">;
  /** The rows that are shown; by default all. */
  readonly rows?: readonly T[] | undefined;
}

export function ListPanel<T>({ title, tools, query, rows = query.data, ...table }: ListPanelProps<T>) {
  return (
    <Panel title={title} tools={tools}>
      {query.error === null ? (
        <DataTable label={title} rows={rows} {...table} />
      ) : (
        <ProblemNote error={query.error} onRetry={() => void query.refetch()} />
      )}
    </Panel>
  );
}
