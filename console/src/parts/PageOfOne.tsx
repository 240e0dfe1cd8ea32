/** The frame of a page about one thing: the way back, and what to show while it is read, when it is gone, or cannot be read. */
import { Skeleton } from "@mantine/core";
import type { UseQueryResult } from "@tanstack/react-query";
import type { LucideIcon } from "lucide-react";
import type { ReactNode } from "react";

import { problemOf } from "@/api/problem";
import { BackLink } from "@/parts/BackLink";
import { EmptyState } from "@/parts/EmptyState";
import { PageHeader } from "@/parts/PageHeader";
import { ProblemNote } from "@/parts/ProblemNote";

interface PageOfOneProps<T> {
  readonly id: string;
  readonly list: string;
  readonly listName: string;
  readonly icon: LucideIcon;
  readonly gone: string;
  readonly goneHint: string;
  readonly query: Pick<UseQueryResult<T, unknown>, "data" | "error" | "refetch">;
  readonly children: (thing: T) => ReactNode;
}

export function PageOfOne<T>({ id, list, listName, icon, gone, goneHint, query, children }: PageOfOneProps<T>) {
  const { data, error, refetch } = query;
  const isGone = error !== null && problemOf(error).status === 404;
  return (
    <>
      <BackLink to={list}>{listName}</BackLink>
      {!isGone && data !== undefined ? (
        children(data)
      ) : (
        <>
          <PageHeader title={id} />
          {isGone && <EmptyState icon={icon} title={gone} hint={goneHint} />}
          {error === null && <Skeleton h={260} />}
          {error !== null && !isGone && <ProblemNote error={error} onRetry={() => void refetch()} />}
        </>
      )}
    </>
  );
}
