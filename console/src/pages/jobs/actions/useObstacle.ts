import { useCallback } from "react";

import { useMe } from "@/app/session";
import { obstacleTo, type ActionName, type Job } from "@/pages/jobs/actions/possible";
import { obstacles } from "@/pages/jobs/actions/texts";
import { states } from "@/texts/common";
import { useTexts } from "@/texts/texts";

/** In words why the viewer cannot do something with a job; undefined where it can be done. */
export function useObstacle(): (action: ActionName, job: Job) => string | undefined {
  const t = useTexts(obstacles);
  const ts = useTexts(states);
  const me = useMe();
  return useCallback(
    (action, job) => {
      const found = obstacleTo(action, job, me);
      return found === undefined ? undefined : t(found, { user: job.user, state: ts(job.state) });
    },
    [t, ts, me],
  );
}
