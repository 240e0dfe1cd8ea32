/** What operators do with queues. */
import { api, sent } from "@/api/client";
import type { Problem } from "@/api/problem";
import { useAction } from "@/api/useAction";
import { settingsOf, isDefaultOfPool, type Draft, type Queue } from "@/pages/scheduling/queues/draft";
import { texts } from "@/pages/scheduling/queues/texts";
import { useDeleteMany } from "@/parts/useDeleteMany";
import { useTexts } from "@/texts/texts";

const TOUCHES = ["/queues", "/pools", "/packages"];

export function useSaveQueue(queue: Queue | undefined, onDone: () => void, onProblem: (problem: Problem) => void) {
  const t = useTexts(texts);
  return useAction<Draft, Queue>({
    run: (draft) =>
      queue === undefined
        ? sent(api.POST("/queues", { body: { name: draft.name, pool: draft.pool, ...settingsOf(draft) } }))
        : sent(api.PATCH("/queues/{name}", { params: { path: { name: queue.name } }, body: settingsOf(draft) })),
    touches: TOUCHES,
    done: (saved) => t(queue === undefined ? "created" : "saved", { name: saved.name }),
    onDone,
    onProblem,
  });
}

export function useDeleteQueues(onDone: () => void): (names: readonly string[]) => void {
  const run = (names: string[]) => sent(api.POST("/queues:delete", { body: { names } }));
  return useDeleteMany({ list: "/queues", texts, touches: TOUCHES, run, onDone });
}

/** Why a queue cannot be deleted now. */
export function useRefusal(): (queue: Queue) => string | undefined {
  const t = useTexts(texts);
  return (queue) => {
    if (isDefaultOfPool(queue)) return t("cannotDefault");
    const jobs = queue.running + queue.queued;
    return jobs > 0 ? t("cannotUsed", { n: jobs }) : undefined;
  };
}
