/** Everything that happened to the job, the newest first. */
import { Button, Group, Text } from "@mantine/core";
import { ListTree } from "lucide-react";
import { useMemo } from "react";

import type { Schema } from "@/api/client";
import { usePages } from "@/api/useAll";
import type { Job } from "@/pages/jobs/actions/possible";
import { happenings, texts } from "@/pages/jobs/job/texts";
import { DataTable, type Column } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { Moment } from "@/parts/Moment";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

type Happening = Schema<"EventView">;

export function EventsTab({ job }: { job: Job }) {
  const t = useTexts(texts);
  const tc = useTexts(common);
  const columns = useColumns();
  const { items, error, hasMore, isLoadingMore, loadMore, retry } = usePages("/events", {
    subject: job.id,
    limit: 100,
  });
  if (error !== null) return <ProblemNote error={error} onRetry={retry} />;
  return (
    <Panel p={0}>
      <DataTable
        label={t("events")}
        rows={items}
        columns={columns}
        rowKey={(event) => String(event.id)}
        empty={<EmptyState icon={ListTree} title={t("noEvents")} />}
        foot={
          hasMore && (
            <Group p="sm">
              <Button variant="default" loading={isLoadingMore} onClick={loadMore}>
                {tc("loadMore")}
              </Button>
            </Group>
          )
        }
      />
    </Panel>
  );
}

function useColumns(): readonly Column<Happening>[] {
  const t = useTexts(texts);
  const th = useTexts(happenings);
  return useMemo(
    () => [
      {
        key: "what",
        title: t("what"),
        render: (event) => (event.action in happenings ? th(event.action as keyof typeof happenings) : event.action),
        width: 220,
      },
      { key: "who", title: t("who"), render: (event) => event.actor || t("system"), width: 130 },
      { key: "detail", title: t("detail"), render: (event) => <Detail detail={event.detail} />, wide: true },
      { key: "when", title: t("when"), render: (event) => <Moment at={event.at} />, numeric: true, width: 120 },
    ],
    [t, th],
  );
}

function Detail({ detail }: { detail: Happening["detail"] }) {
  const text = Object.entries(detail)
    .filter(([, value]) => value !== null && value !== "")
    .map(([name, value]) => `${name.replaceAll("_", " ")}: ${shown(value)}`)
    .join(" · ");
  return (
    <Text size="xs" c="dimmed" style={{ overflowWrap: "anywhere" }}>
      {text}
    </Text>
  );
}

function shown(value: unknown): string {
  if (Array.isArray(value)) return value.map(shown).join(", ");
  if (typeof value === "object" && value !== null) {
    if ("was" in value && "is" in value) return `${shown(value.was)} → ${shown(value.is)}`;
    return Object.entries(value)
      .map(([name, one]) => `${name} ${shown(one)}`)
      .join(", ");
  }
  return value === null ? "–" : String(value);
}
