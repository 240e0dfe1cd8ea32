/** Where each version came from and where it went: the job that made it, and the jobs that used it. */
import { Box, Button, Code, Group, Stack, Text } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { ArrowRight, Waypoints } from "lucide-react";

import { api, sent, type Schema } from "@/api/client";
import type { Dataset } from "@/pages/datasets/dataset";
import { TagBadges } from "@/pages/datasets/TagBadges";
import { texts } from "@/pages/datasets/texts";
import { JobLink } from "@/pages/jobs/why/JobRef";
import { DataTable, Faint, type Column } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { Moment } from "@/parts/Moment";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

type Line = Schema<"VersionLineageView">;
type LineageJob = Schema<"LineageJobView">;

const PAGE = 50;

export function LineageTab({ dataset }: { dataset: Dataset }) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const { data, error, refetch, hasNextPage, isFetchingNextPage, fetchNextPage } = useLineage(dataset.id);
  const columns = useColumns();
  if (error !== null) return <ProblemNote error={error} onRetry={() => void refetch()} />;
  return (
    <Panel title={t("lineage")}>
      <DataTable
        label={t("lineage")}
        rows={data?.pages.flatMap((page) => page.versions)}
        columns={columns}
        rowKey={(line) => line.version}
        empty={<EmptyState icon={Waypoints} title={t("lineageEmpty")} hint={t("lineageEmptyHint")} />}
        foot={
          hasNextPage && (
            <Button variant="default" mt="sm" loading={isFetchingNextPage} onClick={() => void fetchNextPage()}>
              {c("loadMore")}
            </Button>
          )
        }
      />
    </Panel>
  );
}

function useLineage(dataset: string) {
  return useInfiniteQuery({
    // The same shape as the other hooks' keys, so that events of the stream find it by its path.
    queryKey: ["get", "/datasets/{dataset}/lineage", { dataset }],
    queryFn: ({ pageParam: cursor }) =>
      sent(api.GET("/datasets/{dataset}/lineage", { params: { path: { dataset }, query: { limit: PAGE, cursor } } })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.next_cursor ?? undefined,
  });
}

/** Read from the left to the right: made by, is, used by. */
function useColumns(): readonly Column<Line>[] {
  const t = useTexts(texts);
  return [
    {
      key: "made",
      title: t("producedBy"),
      wide: true,
      render: ({ produced_by: maker }) => (
        <Group gap={8} wrap="nowrap" justify="space-between">
          <Maker job={maker} />
          <ArrowRight size={14} aria-hidden style={{ flexShrink: 0, opacity: 0.5 }} />
        </Group>
      ),
    },
    {
      key: "version",
      title: t("version"),
      render: ({ short, tags, message, produced_by: maker }) => (
        <>
          <Group gap={6}>
            <Code>{short}</Code>
            {tags.length > 0 && <TagBadges tags={tags} />}
          </Group>
          <Faint>{message}</Faint>
          {/* Three columns do not fit beside each other there. */}
          <Box hiddenFrom="sm" mt={4}>
            <Maker job={maker} />
          </Box>
        </>
      ),
    },
    {
      key: "used",
      title: t("usedBy"),
      render: ({ used_by: users }) => (
        <Group gap={8} wrap="nowrap">
          <ArrowRight size={14} aria-hidden style={{ flexShrink: 0, opacity: 0.5 }} />
          <Stack gap={2}>
            {users.length === 0 && (
              <Text size="sm" c="dimmed">
                {t("noUse")}
              </Text>
            )}
            {users.map((job) => (
              <UsingJob key={job.id} job={job} />
            ))}
          </Stack>
        </Group>
      ),
    },
  ];
}

function Maker({ job }: { job: LineageJob | null }) {
  const t = useTexts(texts);
  if (job !== null) return <UsingJob job={job} />;
  return (
    <Text size="sm" c="dimmed">
      {t("byHand")}
    </Text>
  );
}

function UsingJob({ job }: { job: LineageJob }) {
  // A user who may not see a job, or opens the page after its deletion, sees only its id.
  if (job.name === null) return <Code>{job.id}</Code>;
  return (
    <Group gap={6}>
      <JobLink id={job.id}>{job.name}</JobLink>
      <Text size="xs" c="dimmed">
        {job.user} · <Moment at={job.last_at} />
      </Text>
    </Group>
  );
}
