/** The scheduler's plan for the draft, requested again when the draft or the cluster changes. */
import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";

import { api, sent, type Schema } from "@/api/client";
import { problemOf, type Problem } from "@/api/problem";

const PAUSE_MS = 350;
/** The viewer receives no events of other users' jobs. */
const AGAIN_MS = 5_000;

export interface Planned {
  readonly plan: Schema<"PlanView"> | undefined;
  /** The server did not even try: a value is not right, or not allowed. */
  readonly problem: Problem | undefined;
  /** Whether the plan is about an earlier draft, or there is none yet. */
  readonly isOld: boolean;
}

export function usePlan(body: Schema<"JobCreate"> | undefined): Planned {
  const asked = body === undefined ? "" : JSON.stringify(body);
  const [settled] = useDebouncedValue(asked, PAUSE_MS);
  const { data, error, isPlaceholderData } = useQuery<Schema<"PlanView">, Problem>({
    queryKey: ["post", "/jobs:plan", settled],
    enabled: settled !== "",
    retry: false,
    refetchInterval: AGAIN_MS,
    placeholderData: (before) => before,
    queryFn: () => planOf(settled),
  });
  if (asked === "") return { plan: undefined, problem: undefined, isOld: false };
  return {
    plan: error === null ? data : undefined,
    problem: error === null ? undefined : problemOf(error),
    // The first answer is also on its way: nothing is wrong with the draft while it is awaited.
    isOld: asked !== settled || isPlaceholderData || (data === undefined && error === null),
  };
}

/** The body travels as the key of its answer, and so as a text. */
export function planOf(body: string): Promise<Schema<"PlanView">> {
  const asked: Schema<"JobCreate"> = JSON.parse(body);
  return sent(api.POST("/jobs:plan", { body: asked }));
}
