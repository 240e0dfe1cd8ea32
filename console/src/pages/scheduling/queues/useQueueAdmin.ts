/** The operators' actions on queues. */
import type { UseFormReturnType } from "@mantine/form";

import { api, sent } from "@/api/client";
import { useOrderingPolicy } from "@/api/options";
import { settingsOf, isDefaultOfPool, type Draft, type Queue } from "@/pages/scheduling/queues/draft";
import { texts } from "@/pages/scheduling/queues/texts";
import { useDeleteMany } from "@/parts/useDeleteMany";
import { useFormAction } from "@/parts/useFormAction";
import { useTexts } from "@/texts/texts";

const TOUCHES = ["/queues", "/pools", "/packages"];

export function useSaveQueue(form: UseFormReturnType<Draft>, queue: Queue | undefined, onDone: () => void) {
  const t = useTexts(texts);
  const ranksJobs = useOrderingPolicy(form.getValues().policy)?.ranks_jobs === true;
  return useFormAction(form, {
    run: (draft) => {
      const settings = settingsOf(draft, ranksJobs);
      return queue === undefined
        ? sent(api.POST("/queues", { body: { name: draft.name, pool: draft.pool, ...settings } }))
        : sent(api.PATCH("/queues/{name}", { params: { path: { name: queue.name } }, body: settings }));
    },
    touches: TOUCHES,
    done: (saved) => t(queue === undefined ? "created" : "saved", { name: saved.name }),
    onDone,
  });
}

export function useDeleteQueues() {
  const run = (names: string[]) => sent(api.POST("/queues:delete", { body: { names } }));
  return useDeleteMany({ list: "/queues", texts, touches: TOUCHES, run });
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
