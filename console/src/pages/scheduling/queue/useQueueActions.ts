/** Actions on jobs in the waiting line: each job is handled separately, and all refusals are shown. */
import { api, sent, type Schema } from "@/api/client";
import { Problem, problemOf } from "@/api/problem";
import { useAction } from "@/api/useAction";
import { send } from "@/pages/jobs/actions/useJobActions";
import type { Wish } from "@/pages/scheduling/queue/order";
import { texts } from "@/pages/scheduling/queue/texts";
import { useConfirm } from "@/parts/confirm";
import { useTexts } from "@/texts/texts";

const TOUCHES = ["/queues", "/jobs", "/overview"];

type Job = Schema<"JobView">;
/** An id with the name that people know it by. */
export interface Named {
  readonly id: string;
  readonly name: string;
  /** It waits and is not pinned: a pin or a stop can be taken back without a trace. */
  readonly undoable?: boolean;
}

interface NamedWish extends Wish {
  readonly name: string;
  readonly targetName: string;
  /** The wish that takes this one back. */
  readonly undo: Wish | undefined;
}

function sendMove({ id, target, where }: Wish): Promise<Job> {
  return sent(api.POST("/jobs/{job}/move", { params: { path: { job: id } }, body: { [where]: target } }));
}

export function useMove() {
  const t = useTexts(texts);
  return useAction<NamedWish, Job>({
    run: sendMove,
    touches: TOUCHES,
    undo: (_, { undo }) => (undo === undefined ? undefined : () => sendMove(undo)),
    done: (_, { name, targetName, where }) => t("moved", { name, where: t(where), target: targetName }),
  });
}

function useEach(
  done: "pinned" | "unpinned" | "stopped",
  run: (job: string) => Promise<unknown>,
  undo?: (job: string) => Promise<unknown>,
) {
  const t = useTexts(texts);
  return useAction<readonly Named[], number>({
    run: async (jobs) => {
      const refused: Problem[] = [];
      for (const job of jobs) await run(job.id).catch((error: unknown) => refused.push(problemOf(error)));
      const [first] = refused;
      if (first === undefined) return jobs.length;
      const title = jobs.length === 1 ? first.title : t("someRefused", { n: refused.length, all: jobs.length });
      throw new Problem(first.status, title, refused.map((one) => one.detail).join(" "));
    },
    touches: TOUCHES,
    done: (count) => t(done, { n: count }),
    undo: (_, jobs) => {
      const canUndo = undo !== undefined && jobs.every((job) => job.undoable === true);
      return canUndo ? () => Promise.all(jobs.map((job) => undo(job.id))) : undefined;
    },
  });
}

export function useQueueActions() {
  const t = useTexts(texts);
  const confirm = useConfirm();
  const pin = useEach(
    "pinned",
    (job) => send("pin", job),
    (job) => send("unpin", job),
  );
  const unpin = useEach("unpinned", (job) => send("unpin", job));
  const stop = useEach(
    "stopped",
    (job) => send("stop", job),
    (job) => send("start", job),
  );
  return {
    /** The later pin goes first: pinned from the last to the first, they keep their order. */
    pin: (jobs: readonly Named[]) => pin.mutate([...jobs].reverse()),
    unpin: (jobs: readonly Named[]) => unpin.mutate(jobs),
    stop: (jobs: readonly Named[], onConfirm?: () => void) => {
      const [first] = jobs;
      if (first === undefined) return;
      confirm({
        title: jobs.length === 1 ? t("stopTitle", { name: first.name }) : t("stopTitleMany", { n: jobs.length }),
        text: t("stopText"),
        action: t("stopAction", { n: jobs.length }),
        onConfirm: () => {
          stop.mutate(jobs);
          onConfirm?.();
        },
      });
    },
    isBusy: pin.isPending || unpin.isPending || stop.isPending,
  };
}

export type QueueActions = ReturnType<typeof useQueueActions>;
