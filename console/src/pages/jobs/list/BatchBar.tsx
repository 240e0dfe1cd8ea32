/** The actions on all selected jobs, and the jobs that do not allow them. */
import { Button, Group, Text } from "@mantine/core";
import { useRouter } from "@tanstack/react-router";
import { GitCompare } from "lucide-react";

import { Problem, problemOf } from "@/api/problem";
import { useAction } from "@/api/useAction";
import { stringifySearch } from "@/app/addresses";
import { LEAST_JOBS, MOST_JOBS } from "@/pages/jobs/compare/compare";
import { ExplainedButton } from "@/parts/ExplainedButton";
import { ICONS } from "@/pages/jobs/actions/JobMenu";
import type { Job } from "@/pages/jobs/actions/possible";
import { assume, send, type QuickAction } from "@/pages/jobs/actions/useJobActions";
import { useObstacle } from "@/pages/jobs/actions/useObstacle";
import { actions } from "@/pages/jobs/actions/texts";
import { texts } from "@/pages/jobs/list/texts";
import { useConfirm } from "@/parts/confirm";
import { toastDone, toastProblem } from "@/parts/toasts";
import { useTexts } from "@/texts/texts";

type BatchAction = Extract<QuickAction, "stop" | "start" | "requeue" | "remove">;
const BATCH: readonly BatchAction[] = ["stop", "start", "requeue", "remove"];
/** At the same time; the rest waits, so that the page stays usable. */
const AT_ONCE = 4;

interface Outcome {
  readonly done: number;
  readonly refusals: readonly Problem[];
}

interface Props {
  readonly jobs: readonly Job[];
  readonly onClear: () => void;
  /** Called with the jobs whose action was done or refused; other jobs stay selected. */
  readonly onDone: (jobs: readonly Job[]) => void;
}

export function BatchBar({ jobs, onClear, onDone }: Props) {
  const t = useTexts(texts);
  if (jobs.length === 0) return null;
  return (
    <Group gap="xs" p="xs" role="toolbar" aria-label={t("chosen", { n: jobs.length })}>
      <Text size="sm" fw={600}>
        {t("chosen", { n: jobs.length })}
      </Text>
      {BATCH.map((action) => (
        <BatchButton key={action} action={action} jobs={jobs} onDone={onDone} />
      ))}
      <CompareButton jobs={jobs} />
      <Button variant="subtle" color="gray" onClick={onClear}>
        {t("clearChosen")}
      </Button>
    </Group>
  );
}

function CompareButton({ jobs }: { jobs: readonly Job[] }) {
  const t = useTexts(texts);
  const router = useRouter();
  const isPossible = jobs.length >= LEAST_JOBS && jobs.length <= MOST_JOBS;
  return (
    <ExplainedButton
      variant="default"
      leftSection={<GitCompare size={14} />}
      why={isPossible ? undefined : t("compareFew")}
      onClick={() => router.history.push(`/jobs/compare${stringifySearch({ job: jobs.map((job) => job.id) })}`)}
    >
      {t("compare")}
    </ExplainedButton>
  );
}

function BatchButton({ action, jobs, onDone }: Omit<Props, "onClear"> & { action: BatchAction }) {
  const t = useTexts(texts);
  const ta = useTexts(actions);
  const obstacle = useObstacle();
  const confirm = useConfirm();
  const run = useBatch(action, onDone);
  const possible = jobs.filter((job) => obstacle(action, job) === undefined);
  const why = jobs.map((job) => obstacle(action, job)).find((one) => one !== undefined) ?? "";
  const left = jobs.length - possible.length;
  const Icon = ICONS[action];
  function start() {
    if (action === "start") {
      run.mutate(possible);
      return;
    }
    const [title, text] = (
      {
        stop: ["batchStopTitle", "batchStopText"],
        requeue: ["batchRequeueTitle", "batchRequeueText"],
        remove: ["batchRemoveTitle", "batchRemoveText"],
      } as const
    )[action];
    confirm({
      title: t(title, { n: possible.length }),
      text: (
        <>
          {t(text)}
          {left > 0 && (
            <Text size="sm" c="dimmed" mt="xs">
              {t("batchLeft", { n: left, why })}
            </Text>
          )}
        </>
      ),
      action: `${ta(action)} (${possible.length})`,
      onConfirm: () => run.mutate(possible),
    });
  }
  return (
    <ExplainedButton
      variant="default"
      color={action === "remove" ? "red" : undefined}
      leftSection={<Icon size={14} />}
      loading={run.isPending}
      why={possible.length === 0 ? t("noneOfThem", { why }) : undefined}
      onClick={start}
    >
      {ta(action)}
      {left > 0 && possible.length > 0 ? ` (${possible.length}/${jobs.length})` : ""}
    </ExplainedButton>
  );
}

/** One request for each job: some may be refused, and the others are done all the same. */
function useBatch(action: BatchAction, onDone: Props["onDone"]) {
  const t = useTexts(texts);
  const ta = useTexts(actions);
  return useAction<readonly Job[], Outcome>({
    run: (jobs) => sendAll(action, jobs),
    touches: ["/jobs", "/queues", "/overview", "/panel", "/events"],
    optimistic: (cache, jobs) => {
      for (const job of jobs) assume(cache, action, job);
    },
    onDone: ({ done, refusals }, jobs) => {
      if (done > 0) toastDone(t("batchDone", { action: ta(action), n: done }));
      const first = refusals[0];
      if (first !== undefined) {
        const detail = t("batchSome", {
          action: ta(action),
          failed: refusals.length,
          n: done + refusals.length,
          why: first.detail,
        });
        toastProblem(new Problem(first.status, first.title, detail));
      }
      onDone(jobs);
    },
  });
}

async function sendAll(action: BatchAction, jobs: readonly Job[]): Promise<Outcome> {
  const waiting = [...jobs];
  const refusals: Problem[] = [];
  let done = 0;
  async function work(): Promise<void> {
    for (let job = waiting.shift(); job !== undefined; job = waiting.shift()) {
      try {
        await send(action, job.id);
        done += 1;
      } catch (error) {
        refusals.push(problemOf(error));
      }
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return { done, refusals };
}
