import { useMemo } from "react";

import type { Job } from "@/pages/jobs/actions/possible";
import { ElapsedCell, ExpectedCell, ImageCell, NameCell, SizeCell, StateCell } from "@/pages/jobs/list/cells";
import { texts } from "@/pages/jobs/list/texts";
import type { Column, Sorting } from "@/parts/DataTable";
import { Moment } from "@/parts/Moment";
import { common, kinds } from "@/texts/common";
import { useTexts } from "@/texts/texts";

/** Columns that the server sorts by, and its words for them. */
const SORTS: Readonly<Record<string, string>> = { name: "name", priority: "priority", created: "created_at" };
const sorted = () => null;

export function useColumns(): readonly Column<Job>[] {
  const t = useTexts(texts);
  const tc = useTexts(common);
  const tk = useTexts(kinds);
  return useMemo(
    () => [
      { key: "name", title: t("job"), render: (job) => <NameCell job={job} />, sort: sorted },
      { key: "state", title: t("state"), render: (job) => <StateCell job={job} /> },
      { key: "user", title: tc("user"), render: (job) => job.user, wide: true },
      { key: "kind", title: tc("kind"), render: (job) => tk(job.kind), wide: true },
      { key: "image", title: t("image"), render: (job) => <ImageCell job={job} />, wide: true },
      { key: "size", title: t("size"), render: (job) => <SizeCell job={job} />, numeric: true },
      { key: "queue", title: tc("queue"), render: (job) => job.queue, wide: true },
      { key: "priority", title: t("priority"), render: (job) => job.priority, numeric: true, wide: true, sort: sorted },
      { key: "elapsed", title: t("elapsed"), render: (job) => <ElapsedCell job={job} />, numeric: true, wide: true },
      { key: "expected", title: t("expected"), render: (job) => <ExpectedCell job={job} />, numeric: true, wide: true },
      {
        key: "created",
        title: t("created"),
        render: (job) => <Moment at={job.created_at} />,
        numeric: true,
        wide: true,
        sort: sorted,
      },
    ],
    [t, tc, tk],
  );
}

/** The server's sort as the table shows it, and back. */
export function sortingOf(sort: string): Sorting {
  const field = sort.replace(/^-/, "");
  const key = Object.keys(SORTS).find((name) => SORTS[name] === field) ?? "created";
  return { key, descending: sort.startsWith("-") };
}

export function sortOf({ key, descending }: Sorting): string {
  return `${descending ? "-" : ""}${SORTS[key] ?? "id"}`;
}
