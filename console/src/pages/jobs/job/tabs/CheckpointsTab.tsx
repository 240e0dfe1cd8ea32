/** The checkpoints of the job's program, and a button that asks it to save now. */
import { Code, Group, Text } from "@mantine/core";
import { CircleCheck, Save, TriangleAlert } from "lucide-react";
import { useMemo } from "react";

import { $api, type Schema } from "@/api/client";
import { ExplainedButton } from "@/parts/ExplainedButton";
import type { Job } from "@/pages/jobs/actions/possible";
import { useJobActions } from "@/pages/jobs/actions/useJobActions";
import { useObstacle } from "@/pages/jobs/actions/useObstacle";
import { actions } from "@/pages/jobs/actions/texts";
import { texts } from "@/pages/jobs/job/texts";
import { DataTable, Faint, type Column } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { Moment } from "@/parts/Moment";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

type Checkpoint = Schema<"CheckpointView">;

export function CheckpointsTab({ job }: { job: Job }) {
  const t = useTexts(texts);
  const ta = useTexts(actions);
  const act = useJobActions();
  const why = useObstacle()("checkpoint", job);
  const columns = useColumns();
  const { data, error, refetch } = $api.useQuery("get", "/jobs/{job}/checkpoints", {
    params: { path: { job: job.id } },
  });
  if (error !== null) return <ProblemNote error={error} onRetry={() => void refetch()} />;
  return (
    <Panel p={0}>
      <Group p="sm" justify="flex-end">
        <ExplainedButton
          variant="default"
          leftSection={<Save size={14} />}
          why={why}
          onClick={() => act("checkpoint", job)}
        >
          {ta("checkpoint")}
        </ExplainedButton>
      </Group>
      <DataTable
        label={t("checkpoints")}
        rows={data?.items}
        columns={columns}
        rowKey={(saved) => saved.name}
        empty={<EmptyState icon={Save} title={t("noCheckpoints")} hint={t("noCheckpointsHint")} />}
      />
    </Panel>
  );
}

function useColumns(): readonly Column<Checkpoint>[] {
  const t = useTexts(texts);
  const format = useFormat();
  return useMemo(
    () => [
      { key: "name", title: t("name"), render: (saved) => <NameCell saved={saved} /> },
      {
        key: "step",
        title: t("step"),
        render: (saved) => format.number(saved.step),
        numeric: true,
        sort: (saved) => saved.step,
      },
      {
        key: "size",
        title: t("checkpointSize"),
        render: (saved) => format.bytes(saved.size_bytes),
        numeric: true,
        sort: (saved) => saved.size_bytes,
      },
      { key: "parts", title: t("parts"), render: (saved) => saved.parts, numeric: true, wide: true },
      { key: "attempt", title: t("byAttempt"), render: (saved) => saved.attempt ?? "–", numeric: true, wide: true },
      { key: "good", title: t("good"), render: (saved) => <Good saved={saved} /> },
      {
        key: "saved",
        title: t("saved"),
        render: (saved) => <Moment at={saved.saved_at} />,
        numeric: true,
        sort: (saved) => saved.saved_at,
      },
    ],
    [t, format],
  );
}

function NameCell({ saved }: { saved: Checkpoint }) {
  return (
    <>
      <Text size="sm">{saved.name}</Text>
      {saved.path !== null && (
        <Faint>
          <Code>{saved.path}</Code>
        </Faint>
      )}
    </>
  );
}

function Good({ saved }: { saved: Checkpoint }) {
  const t = useTexts(texts);
  const Icon = saved.good ? CircleCheck : TriangleAlert;
  return (
    <Group gap={6} wrap="nowrap">
      <Icon size={15} aria-hidden color={saved.good ? "var(--corral-good)" : "var(--corral-bad)"} />
      <Text size="sm">{saved.good ? t("usable") : (saved.problem ?? "")}</Text>
    </Group>
  );
}
