/** Actions on jobs in the waiting line: each job is handled separately, and all refusals are shown. */
import { api, sent, type Schema } from "@/api/client";
import { Problem, problemOf } from "@/api/problem";
import { useAction } from "@/api/useAction";
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
}

export function useMove() {
  const t = useTexts(texts);
  return useAction<Wish & { readonly name: string; readonly targetName: string }, Job>({
    run: ({ id, target, where }) =>
      sent(api.POST("/jobs/{job}/move", { params: { path: { job: id } }, body: { [where]: target } })),
    touches: TOUCHES,
    done: (_, { name, targetName, where }) => t("moved", { name, where: t(where), target: targetName }),
  });
}

function useEach(done: "pinned" | "unpinned" | "stopped", run: (job: string) => Promise<unknown>) {
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
  });
}

export function useQueueActions() {
  const t = useTexts(texts);
  const confirm = useConfirm();
  const pin = useEach("pinned", (job) => sent(api.POST("/jobs/{job}/pin", { params: { path: { job } } })));
  const unpin = useEach("unpinned", (job) => sent(api.POST("/jobs/{job}/unpin", { params: { path: { job } } })));
  const stop = useEach("stopped", (job) => sent(api.POST("/jobs/{job}/stop", { params: { path: { job } } })));
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
