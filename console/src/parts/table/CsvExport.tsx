/**
 * Writes rows as CSV by drawing their cells out of sight, some at a time: every table can be exported without a second
 * description of its columns, and thousands of rows do not block the page.
 */
import { useEffect, useRef, useState } from "react";

import type { Column } from "@/parts/DataTable";
import { csvOf, textOf } from "@/parts/table/csv";

const ROWS_AT_ONCE = 40;

interface CsvExportProps<T> {
  /** The name of the file, without its ending. */
  readonly name: string;
  readonly rows: readonly T[];
  readonly columns: readonly Column<T>[];
  readonly onDone: () => void;
}

export function CsvExport<T>({ name, rows, columns, onDone }: CsvExportProps<T>) {
  const box = useRef<HTMLDivElement>(null);
  const lines = useRef<string[][]>([]);
  const [first, setFirst] = useState(0);
  const part = rows.slice(first, first + ROWS_AT_ONCE);
  useEffect(() => {
    const drawn = Array.from(box.current?.children ?? []);
    drawn.forEach((row, at) => {
      lines.current[first + at] = columns.map((column, index) =>
        valueOf(rows[first + at] as T, column, row.children[index]),
      );
    });
    if (first + ROWS_AT_ONCE < rows.length) {
      const timer = window.setTimeout(() => setFirst(first + ROWS_AT_ONCE));
      return () => window.clearTimeout(timer);
    }
    const timer = window.setTimeout(() => {
      save(`${name}.csv`, csvOf([columns.map((column) => column.title), ...lines.current]));
      onDone();
    });
    return () => window.clearTimeout(timer);
  }, [first, rows, columns, name, onDone]);
  return (
    <div hidden ref={box}>
      {part.map((row, at) => (
        <div key={first + at}>
          {columns.map((column) => (
            <div key={column.key}>{column.render(row)}</div>
          ))}
        </div>
      ))}
    </div>
  );
}

/** Numbers without units where the column sorts by them; otherwise what the cell shows. */
function valueOf<T>(row: T, column: Column<T>, cell: Element | undefined): string {
  if (cell === undefined) return "";
  const plain = column.numeric === true ? column.sort?.(row) : undefined;
  if (typeof plain === "number" && cell.querySelector("time") === null) return String(plain);
  return textOf(cell);
}

function save(name: string, text: string): void {
  const address = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  // The browser has begun to read it by then.
  window.setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
