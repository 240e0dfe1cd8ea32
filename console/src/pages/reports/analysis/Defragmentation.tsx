/** The moves that would free whole nodes, how the nodes look before and after them, and the latest run of such moves. */
import { Anchor, Box, Button, Group, List, SimpleGrid, Skeleton, Stack, Text, Title } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { LayoutGrid } from "lucide-react";

import { $api, api, sent, type Schema } from "@/api/client";
import { useAction } from "@/api/useAction";
import { useAll } from "@/api/useAll";
import { NodeStrip, Swatch } from "@/pages/reports/analysis/NodeStrip";
import { places } from "@/pages/reports/analysis/places";
import { texts } from "@/pages/reports/analysis/texts";
import { useConfirm } from "@/parts/confirm";
import { EmptyState } from "@/parts/EmptyState";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

type Plan = Schema<"DefragmentationView">;
type Run = Schema<"DefragmentationRunView">;

const TOUCHED = ["/analysis/defragmentation", "/analysis/defragmentation/run", "/jobs"] as const;
const POLL_MS = 5_000;

export function Defragmentation() {
  const t = useTexts(texts);
  const { data: plan, error, refetch } = $api.useQuery("get", "/analysis/defragmentation");
  return (
    <Panel title={t("defragmentation")} tools={(plan?.moves.length ?? 0) > 0 ? <Approve /> : undefined}>
      <LatestRun />
      {error !== null ? (
        <ProblemNote error={error} onRetry={() => void refetch()} />
      ) : plan === undefined ? (
        <Skeleton h={140} />
      ) : plan.moves.length === 0 ? (
        <EmptyState icon={LayoutGrid} title={t("compact")} hint={t("compactHint")} />
      ) : (
        <Stack>
          <Summary plan={plan} />
          <SimpleGrid cols={{ base: 1, lg: 2 }} spacing="xl">
            <BeforeAndAfter plan={plan} />
            <Moves plan={plan} />
          </SimpleGrid>
        </Stack>
      )}
    </Panel>
  );
}

function Approve() {
  const t = useTexts(texts);
  const confirm = useConfirm();
  const start = useAction({
    run: () => sent(api.POST("/analysis/defragmentation", { body: {} })),
    touches: TOUCHED,
    done: () => t("approved"),
  });
  return (
    <Button
      size="xs"
      loading={start.isPending}
      onClick={() =>
        confirm({
          title: t("approveTitle"),
          text: t("approveText"),
          action: t("approve"),
          onConfirm: () => start.mutate(undefined),
        })
      }
    >
      {t("approve")}
    </Button>
  );
}

/** The latest run; empty before the first one. */
function LatestRun() {
  const { data: run } = $api.useQuery(
    "get",
    "/analysis/defragmentation/run",
    {},
    { retry: false, refetchInterval: POLL_MS },
  );
  return run === undefined ? null : <RunMoves run={run} />;
}

function RunMoves({ run }: { run: Run }) {
  const t = useTexts(texts);
  const cancel = useAction({
    run: () => sent(api.POST("/analysis/defragmentation/run/cancel")),
    touches: TOUCHED,
    done: () => t("movesCancelled"),
  });
  const waits = run.moves.some((move) => move.state === "waiting");
  return (
    <Box mb="md">
      <Group justify="space-between">
        <Title order={3}>{t("latestRun")}</Title>
        {waits && (
          <Button size="xs" variant="default" loading={cancel.isPending} onClick={() => cancel.mutate(undefined)}>
            {t("cancelMoves")}
          </Button>
        )}
      </Group>
      <List size="sm" aria-label={t("latestRun")}>
        {run.moves.map((move) => (
          <List.Item key={move.job}>
            {t("runMove", { name: move.name, from: move.from_node, to: move.to_node, state: t(`move-${move.state}`) })}
            {move.detail !== "" && (
              <Text size="xs" c="dimmed">
                {move.detail}
              </Text>
            )}
          </List.Item>
        ))}
      </List>
    </Box>
  );
}

function Summary({ plan }: { plan: Plan }) {
  const t = useTexts(texts);
  const format = useFormat();
  return (
    <Box>
      <Text size="sm">
        <strong>{t("wouldFree", { n: plan.frees.length })}</strong> ·{" "}
        {t("wouldLose", { hours: format.number(plan.lost_gpu_hours) })}
      </Text>
      {plan.helps.length > 0 && (
        <Text size="sm">{t("wouldHelp", { n: plan.helps.length, jobs: plan.helps.join(", ") })}</Text>
      )}
      <Text size="sm" c="dimmed">
        {t("defragmentationHint")}
      </Text>
    </Box>
  );
}

function BeforeAndAfter({ plan }: { plan: Plan }) {
  const t = useTexts(texts);
  const { data: gpus } = useAll("/gpus");
  if (gpus === undefined) return <Skeleton h={120} />;
  return (
    <Stack gap="xs">
      <Group gap="md">
        <Swatch look="stays" label={t("legendStays")} />
        <Swatch look="moves" label={t("legendMoves")} />
        <Swatch look="free" label={t("legendFree")} />
      </Group>
      <SimpleGrid cols={2}>
        <Title order={3}>{t("before")}</Title>
        <Title order={3}>{t("after")}</Title>
        {places(plan, gpus).flatMap((place) => [
          <NodeStrip key={`${place.node} before`} node={place.node} gpus={place.before} />,
          <NodeStrip key={`${place.node} after`} node={place.node} gpus={place.after} />,
        ])}
      </SimpleGrid>
    </Stack>
  );
}

function Moves({ plan }: { plan: Plan }) {
  const t = useTexts(texts);
  const format = useFormat();
  return (
    <Box>
      <Title order={3} mb="xs">
        {t("moves")}
      </Title>
      <List type="ordered" size="sm" spacing="xs" aria-label={t("moves")}>
        {plan.moves.map((move, step) => (
          <List.Item key={`${step} ${move.job}`}>
            <Anchor size="sm" renderRoot={(props) => <Link to={`/jobs/${move.job}`} {...props} />}>
              {move.name}
            </Anchor>{" "}
            <Text span size="xs" c="dimmed">
              {move.job} · {move.user}
            </Text>
            <Text size="sm">
              {t("moveText", {
                gpus: move.before.grants.reduce(
                  (sum, grant) => sum + (grant.node === move.from_node ? grant.gpus.length : 0),
                  0,
                ),
                from: move.from_node,
                to: move.to_node,
              })}
            </Text>
            <Text size="xs" c="dimmed">
              {t("moveLoses", { hours: format.number(move.lost_gpu_hours) })}
            </Text>
          </List.Item>
        ))}
      </List>
    </Box>
  );
}
