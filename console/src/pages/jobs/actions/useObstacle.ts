import { useCallback } from "react";

import { useMe } from "@/app/session";
import { obstacleTo, type ActionName, type Job } from "@/pages/jobs/actions/possible";
import { obstacles } from "@/pages/jobs/actions/words";
import { states } from "@/words/common";
import { useWords } from "@/words/words";

/** In words why the viewer cannot do something with a job; undefined where it can be done. */
export function useObstacle(): (action: ActionName, job: Job) => string | undefined {
  const t = useWords(obstacles);
  const ts = useWords(states);
  const me = useMe();
  return useCallback(
    (action, job) => {
      const found = obstacleTo(action, job, me);
      return found === undefined ? undefined : t(found, { user: job.user, state: ts(job.state) });
    },
    [t, ts, me],
  );
}
