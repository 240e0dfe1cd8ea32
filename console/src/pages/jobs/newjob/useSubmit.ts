/** Hands a finished draft in: one job, an array of them, or a workbench. Then its page is shown. */
import { useRouter } from "@tanstack/react-router";

import { api, sent, type Schema } from "@/api/client";
import { complete } from "@/api/complete";
import type { Problem } from "@/api/problem";
import { useAction } from "@/api/useAction";
import { jobBody, workbenchBody } from "@/pages/jobs/newjob/draft/body";
import type { Draft } from "@/pages/jobs/newjob/draft/draft";
import { texts } from "@/pages/jobs/newjob/texts";
import { useTexts } from "@/texts/texts";

interface Made {
  readonly name: string;
  readonly count: number;
  /** Where it is seen. */
  readonly path: string;
}

async function submit(draft: Draft): Promise<Made> {
  if (draft.kind === "workbench") {
    const bench = await sent(api.POST("/workbenches", { body: workbenchBody(draft) }));
    return { name: bench.name, count: 1, path: "/workbenches" };
  }
  const body = jobBody(draft);
  if (body.array !== undefined) {
    const { items } = await sent(api.POST("/jobs:array", { body: complete<Schema<"JobArray">>(body) }));
    return { name: draft.name, count: items.length, path: `/jobs?q=${encodeURIComponent(`${draft.name}-`)}` };
  }
  const job = await sent(api.POST("/jobs", { body: complete<Schema<"JobCreate">>(body) }));
  return { name: job.name, count: 1, path: `/jobs/${job.id}` };
}

export function useSubmit({ onDone, onProblem }: { onDone: () => void; onProblem: (problem: Problem) => void }) {
  const t = useTexts(texts);
  const router = useRouter();
  return useAction<Draft, Made>({
    run: submit,
    touches: ["/jobs", "/workbenches", "/overview", "/queues", "/me/quota", "/packages"],
    done: (made, draft) =>
      made.count > 1
        ? t("submittedArray", { n: made.count })
        : t(draft.hold ? "created" : "submitted", { name: made.name }),
    onDone: (made) => {
      onDone();
      router.history.push(made.path);
    },
    onProblem,
  });
}
