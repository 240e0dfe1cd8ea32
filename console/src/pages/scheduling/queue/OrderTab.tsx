import { Button, Group, Skeleton, Stack, Switch, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { CircleStop, Crosshair, Hourglass, ListOrdered, Pin, PinOff, UserRound } from "lucide-react";
import { useMemo, useState } from "react";

import { $api, type Schema } from "@/api/client";
import { useOrderingPolicy } from "@/api/options";
import { useCluster } from "@/app/cluster";
import { useIsOperator, useMe } from "@/app/session";
import { FreeGpus } from "@/pages/scheduling/queue/FreeGpus";
import { LinePanel } from "@/pages/scheduling/queue/LinePanel";
import { lineKey, mayRunOn, type Place } from "@/pages/scheduling/queue/order";
import { RunningPanel } from "@/pages/scheduling/queue/RunningPanel";
import { useQueueActions, type Named, type QueueActions } from "@/pages/scheduling/queue/useQueueActions";
import { orders, texts } from "@/pages/scheduling/queue/texts";
import { BatchBar } from "@/parts/BatchBar";
import { EmptyState } from "@/parts/EmptyState";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { useTextOr, useTexts } from "@/texts/texts";

type Queue = Schema<"QueueView">;

export function OrderTab({
  queue,
  onlyMine,
  onOnlyMine,
}: {
  queue: Queue;
  onlyMine: boolean;
  onOnlyMine: (value: boolean) => void;
}) {
  const t = useTexts(texts);
  const me = useMe();
  const { data, error, refetch } = $api.useQuery("get", "/queues/{name}/order", {
    params: { path: { name: queue.name } },
  });
  const actions = useQueueActions();
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const places = useMemo(() => data?.lines.flatMap((line) => line.jobs) ?? [], [data]);
  const cluster = useCluster();
  const mine = places.filter((place) => place.user === me.name && mayRunOn(place, cluster));
  function choose(id: string) {
    const next = new Set(chosen);
    if (!next.delete(id)) next.add(id);
    setChosen(next);
  }
  if (data === undefined)
    return error === null ? <Skeleton h={320} /> : <ProblemNote error={error} onRetry={() => void refetch()} />;
  return (
    <Stack gap="md">
      <Panel p="sm">
        <Group justify="space-between" gap="sm">
          <PolicyText queue={queue} />
          <Group gap="md">
            <Switch
              size="sm"
              label={t("mine")}
              checked={onlyMine}
              onChange={(event) => onOnlyMine(event.currentTarget.checked)}
            />
            <Button
              variant="default"
              leftSection={<Crosshair size={14} />}
              disabled={mine.length === 0}
              title={mine.length === 0 ? t("jumpNone") : undefined}
              onClick={() => jumpTo(mine[0])}
            >
              {t("jump")}
            </Button>
          </Group>
        </Group>
      </Panel>
      {data.lines.map((line) => (
        <LinePanel
          key={lineKey(line)}
          line={line}
          policy={queue.policy}
          onlyMine={onlyMine}
          chosen={chosen}
          onChoose={choose}
          actions={actions}
        />
      ))}
      {places.every((place) => !mayRunOn(place, cluster)) && <NothingWaits queue={queue} />}
      {places.length > 0 && onlyMine && mine.length === 0 && (
        <Panel>
          <EmptyState icon={UserRound} title={t("noneOfMine")} hint={t("noneOfMineHint")} />
        </Panel>
      )}
      {data.waiting_for_others > 0 && (
        <Group gap={8} c="dimmed" px={4}>
          <Hourglass size={15} aria-hidden />
          <Text size="sm">{t("waitForOthers", { n: data.waiting_for_others })}</Text>
        </Group>
      )}
      <RunningPanel queue={queue} onlyMine={onlyMine} actions={actions} />
      <ChosenBar places={places} chosen={chosen} onDone={() => setChosen(new Set())} actions={actions} />
    </Stack>
  );
}

function PolicyText({ queue }: { queue: Queue }) {
  const t = useTexts(texts);
  const isOperator = useIsOperator();
  const policy = useOrderingPolicy(queue.policy);
  const orderText = useTextOr(orders)(queue.policy, `${queue.policy}: ${policy?.description ?? ""}.`);
  const order = policy?.uses_own_order !== true ? t("noOwnOrder") : isOperator ? t("dragHintOperator") : t("dragHint");
  return (
    <Text size="sm" c="dimmed" maw={760}>
      {orderText} {queue.blocking === "strict" ? t("strictHint") : t("backfillHint")} {order}
    </Text>
  );
}

function NothingWaits({ queue }: { queue: Queue }) {
  const t = useTexts(texts);
  return (
    <Panel>
      <EmptyState icon={ListOrdered} title={t("nothingWaits")} hint={t("nothingWaitsHint")}>
        <FreeGpus pool={queue.pool} />
        <Button mt="xs" renderRoot={(props) => <Link to="/jobs/new" {...props} />}>
          {t("newJob")}
        </Button>
      </EmptyState>
    </Panel>
  );
}

/** Operators' actions on several jobs at once; only what still waits counts. */
function ChosenBar({
  places,
  chosen,
  onDone,
  actions,
}: {
  places: readonly Place[];
  chosen: ReadonlySet<string>;
  onDone: () => void;
  actions: QueueActions;
}) {
  const t = useTexts(texts);
  const jobs = places.flatMap((place): Named[] =>
    place.id !== null && chosen.has(place.id) ? [{ id: place.id, name: place.name ?? place.id }] : [],
  );
  const done = (act: (jobs: readonly Named[]) => void) => () => {
    act(jobs);
    onDone();
  };
  return (
    <div style={{ position: "sticky", bottom: 12, zIndex: 5 }}>
      <BatchBar
        count={jobs.length}
        actions={[
          { label: t("pin"), icon: Pin, onClick: done(actions.pin) },
          { label: t("unpin"), icon: PinOff, onClick: done(actions.unpin) },
          { label: t("stop"), icon: CircleStop, danger: true, onClick: () => actions.stop(jobs, onDone) },
        ]}
        onClear={onDone}
      />
    </div>
  );
}

/** Own jobs are drawn wherever they stand, so that there is always a row to go to. */
function jumpTo(place: Place | undefined) {
  if (place?.id === undefined || place.id === null) return;
  const row = document.querySelector(`li[data-key="${CSS.escape(place.id)}"]`);
  row?.scrollIntoView({ block: "center", behavior: "smooth" });
  row?.querySelector<HTMLElement>("a, button")?.focus({ preventScroll: true });
}
