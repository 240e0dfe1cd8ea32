/**
 * The data that a draft is checked against: the user's quota and limits, packages, presets, queues, images, and used
 * names.
 */
import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";

import { $api, api, sent, type Schema } from "@/api/client";
import { JOB_NAME } from "@/api/names";
import type { Problem } from "@/api/problem";
import { useAll } from "@/api/useAll";
import { useEvery } from "@/api/useEvery";
import { useMe, type Me } from "@/app/session";
import { type Facts } from "@/pages/jobs/newjob/draft/check";
import type { Draft } from "@/pages/jobs/newjob/draft/draft";
import { wholeOf } from "@/pages/jobs/newjob/draft/quantities";

const PAUSE_MS = 300;
const OFFERS_MS = 15_000;

/** The packages that the viewer could have for a job of this kind; undefined while that is not known. */
export function useOffers(draft: Draft): readonly Schema<"PackageView">[] | undefined {
  const nodes = draft.kind === "distributed" ? (wholeOf(draft.nodes, 1, 10_000) ?? 1) : undefined;
  const { data, refetch } = useAll("/packages", { kind: draft.kind, nodes });
  // Others' jobs are no news to everybody, but what they take is.
  useEvery(OFFERS_MS, () => void refetch());
  return useMemo(
    () => data?.toSorted((left, right) => left.gpus - right.gpus || left.name.localeCompare(right.name)),
    [data],
  );
}

export function useFacts(draft: Draft): Facts {
  const me: Me = useMe();
  const quota = $api.useQuery("get", "/me/quota").data;
  const offers = useOffers(draft);
  const presets = useAll("/presets").data;
  const keys = useAll("/me/ssh-keys").data;
  return {
    quota: quota?.kinds[draft.kind],
    limits: me.limits,
    offers,
    preset: presets?.find((one) => one.name === draft.preset),
    takenBy: useTaken(draft, me.name),
    hasKeys: keys === undefined || keys.length > 0,
    volumes: useAll("/volumes").data,
    datasets: useAll("/datasets").data,
    localQuota: quota?.volumes.local,
  };
}

/** The job of the viewer's own that has this name already. */
function useTaken(draft: Draft, user: string): string | undefined {
  const [name] = useDebouncedValue(draft.name, PAUSE_MS);
  const { data } = useQuery<readonly Schema<"JobView">[], Problem>({
    queryKey: ["get", "/jobs", { named: name, user }],
    enabled: JOB_NAME.test(name),
    queryFn: async () =>
      (await sent(api.GET("/jobs", { params: { query: { user: [user], name, limit: 200 } } }))).items,
  });
  return draft.name === name ? data?.find((job) => job.name === name && job.user === user)?.id : undefined;
}
