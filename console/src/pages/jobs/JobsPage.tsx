/** All jobs that the viewer may see: narrowed by filters in the address, live, page by page. */
import { Box, Button, Group, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { Boxes, Plus } from "lucide-react";
import { useCallback, useMemo, useState } from "react";

import { $api } from "@/api/client";
import { usePages } from "@/api/useAll";
import { useCluster } from "@/app/cluster";
import { useFilters } from "@/app/useFilters";
import { JobMenu } from "@/pages/jobs/actions/JobMenu";
import type { Job } from "@/pages/jobs/actions/possible";
import { BatchBar } from "@/pages/jobs/list/BatchBar";
import { sortingOf, sortOf, useColumns } from "@/pages/jobs/list/columns";
import { FilterBar } from "@/pages/jobs/list/FilterBar";
import { isSameFilters, NO_FILTERS, queryOf, type JobFilters } from "@/pages/jobs/list/filters";
import { PlannedStarts, usePlannedStarts } from "@/pages/jobs/list/planned";
import { Views } from "@/pages/jobs/list/Views";
import { texts } from "@/pages/jobs/list/texts";
import { DataTable, NothingFound, type Sorting } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { useNow } from "@/parts/Moment";
import { PageHeader } from "@/parts/PageHeader";
import { Panel } from "@/parts/Panel";
import ResourcePanel from "@/parts/ResourcePanel";
import { ProblemNote } from "@/parts/ProblemNote";
import { common } from "@/texts/common";
import { useFormat } from "@/texts/format";
import { navigation } from "@/texts/navigation";
import { useTexts } from "@/texts/texts";

const PAGE = 50;
const idOf = (job: Job) => job.id;
const pageOf = (job: Job) => `/jobs/${job.id}`;
const menuOf = (job: Job) => <JobMenu job={job} />;

export default function JobsPage() {
  const t = useTexts(texts);
  const tn = useTexts(navigation);
  const format = useFormat();
  const [filters, setFilters] = useFilters(NO_FILTERS);
  const query = useQueryOf(filters);
  const { data: counts } = $api.useQuery(
    "get",
    "/jobs:counts",
    { params: { query: { ...query, state: undefined } } },
    { placeholderData: (before) => before },
  );
  const total = counts === undefined ? undefined : countOf(counts.by_state, filters.state);
  return (
    <>
      <PageHeader title={tn("jobs")} detail={total === undefined ? undefined : t("total", { n: format.number(total) })}>
        <Button leftSection={<Plus size={15} />} renderRoot={(props) => <Link to="/jobs/new" {...props} />}>
          {t("newJob")}
        </Button>
      </PageHeader>
      <ResourcePanel mb="sm" />
      <Box mb="sm">
        <Views filters={filters} />
      </Box>
      <FilterBar filters={filters} onChange={setFilters} counts={counts} />
      <JobTable filters={filters} query={query} onSort={(sort) => setFilters({ sort })} />
    </>
  );
}

/** The same object as long as it asks the same: times relative to now move on once a minute. */
function useQueryOf(filters: JobFilters) {
  const now = useNow();
  const cluster = useCluster();
  const text = JSON.stringify({ ...queryOf(filters, now), cluster: cluster || undefined });
  return useMemo(() => JSON.parse(text) as ReturnType<typeof queryOf>, [text]);
}

function countOf(byState: Readonly<Record<string, number>>, states: readonly string[]): number {
  const counted = Object.entries(byState).filter(([state]) => states.length === 0 || states.includes(state));
  return counted.reduce((sum, [, count]) => sum + count, 0);
}

function JobTable({
  filters,
  query,
  onSort,
}: {
  filters: JobFilters;
  query: ReturnType<typeof queryOf>;
  onSort: (sort: string) => void;
}) {
  const t = useTexts(texts);
  const tc = useTexts(common);
  const format = useFormat();
  const columns = useColumns();
  const asked = useMemo(() => ({ ...query, sort: filters.sort, limit: PAGE }), [query, filters.sort]);
  const { items, error, hasMore, isLoadingMore, isStale, loadMore, loadAll, retry } = usePages("/jobs", asked);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const planned = usePlannedStarts(items);
  const sorting = useMemo(() => sortingOf(filters.sort), [filters.sort]);
  const sort = useCallback((next: Sorting) => onSort(sortOf(next)), [onSort]);
  // A job that went out of sight is not acted on.
  const chosenJobs = useMemo(() => items?.filter((job) => chosen.has(job.id)) ?? [], [items, chosen]);
  if (error !== null && items === undefined) return <ProblemNote error={error} onRetry={retry} />;
  return (
    <Panel p={0} style={{ opacity: isStale ? 0.6 : 1 }} aria-busy={isStale}>
      <BatchBar
        jobs={chosenJobs}
        onClear={() => setChosen(new Set())}
        onDone={(jobs) => {
          const handled = new Set(jobs.map(idOf));
          setChosen((before) => new Set([...before].filter((id) => !handled.has(id))));
        }}
      />
      <PlannedStarts value={planned}>
        <DataTable
          label={t("label")}
          rows={items}
          columns={columns}
          rowKey={idOf}
          href={pageOf}
          actions={menuOf}
          selected={chosen}
          onSelect={setChosen}
          sorting={sorting}
          onSort={sort}
          loadAll={loadAll}
          hasViews={false}
          empty={isSameFilters(filters, {}) && query.cluster === undefined ? <NoJobs /> : <NothingFound />}
        />
      </PlannedStarts>
      {items !== undefined && items.length > 0 && (
        <Group justify="space-between" p="sm">
          <Text size="xs" c="dimmed">
            {t("loaded", { n: format.number(items.length) })}
          </Text>
          {hasMore && (
            <Button variant="default" loading={isLoadingMore} onClick={loadMore}>
              {tc("loadMore")}
            </Button>
          )}
        </Group>
      )}
    </Panel>
  );
}

function NoJobs() {
  const t = useTexts(texts);
  return (
    <EmptyState icon={Boxes} title={t("noJobs")} hint={t("noJobsHint")}>
      <Button leftSection={<Plus size={15} />} renderRoot={(props) => <Link to="/jobs/new" {...props} />}>
        {t("newJob")}
      </Button>
    </EmptyState>
  );
}
