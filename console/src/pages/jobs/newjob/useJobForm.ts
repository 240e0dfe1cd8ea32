/** A draft with everything that is known about it: checks, the server's own findings, and the dry run. */
import { useCallback, useEffect, useMemo } from "react";

import type { Problem } from "@/api/problem";
import { planBody } from "@/pages/jobs/newjob/draft/body";
import { check, type Findings } from "@/pages/jobs/newjob/draft/check";
import type { Change, Draft } from "@/pages/jobs/newjob/draft/draft";
import { useFacts } from "@/pages/jobs/newjob/facts";
import type { Form } from "@/pages/jobs/newjob/form";
import { usePlan } from "@/pages/jobs/newjob/usePlan";
import { texts } from "@/pages/jobs/newjob/texts";
import { kinds } from "@/texts/common";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

export interface JobForm extends Form {
  readonly findings: Findings;
  /** Why it would be refused if it were submitted now. */
  readonly refusal: string | undefined;
}

interface Options {
  readonly draft: Draft;
  readonly set: (change: Change) => void;
  /** The user has tried to continue: missing values are shown, too. */
  readonly isAttempted: boolean;
  /** The refusal of an attempt to submit. */
  readonly refused: Problem | null;
  readonly goTo?: (step: string) => void;
}

export function useJobForm({ draft, set, isAttempted, refused, goTo }: Options): JobForm {
  const t = useTexts(texts);
  const kind = useTexts(kinds)(draft.kind);
  const { bytes } = useFormat();
  const facts = useFacts(draft);
  const findings = useMemo(() => check(draft, facts, { t, kind, bytes }), [draft, facts, t, kind, bytes]);
  const planned = usePlan(isPlannable(draft, findings) ? planBody(draft) : undefined);
  const fromServer = useMemo(() => fieldsOf(refused, planned.problem), [refused, planned.problem]);

  // With packages one picks one of them; without, one says a size.
  const isUnset = draft.sizing === "unset";
  const hasOffers = facts.offers === undefined ? undefined : facts.offers.length > 0;
  useEffect(() => {
    if (isUnset && hasOffers !== undefined)
      set((before) => (before.sizing === "unset" ? { sizing: hasOffers ? "package" : "custom" } : {}));
  }, [isUnset, hasOffers, set]);

  const problem = useCallback(
    (field: string) => {
      const found = findings[field];
      if (found !== undefined) return !found.isMissing || isAttempted ? found.text : undefined;
      return fromServer.get(field);
    },
    [findings, fromServer, isAttempted],
  );
  const refusal = draft.hold
    ? undefined
    : (planned.problem?.detail ?? (planned.plan?.outcome === "refuse" ? planned.plan.detail : undefined));
  return { draft, set, facts, planned, problem, findings, refusal, goTo: goTo ?? (() => undefined) };
}

/** Something is asked for that the scheduler can judge; what is only missing does not matter to it. */
function isPlannable(draft: Draft, findings: Findings): boolean {
  if (
    draft.sizing === "unset" ||
    (draft.sizing === "package" && draft.package === "") ||
    (draft.kind === "preset" && draft.preset === "")
  )
    return false;
  // Beyond the quota the server says it best, with its numbers; what is no number at all it need not see.
  return Object.entries(findings).every(([field, found]) =>
    found.isMissing === true ? !/^(parameters|mounts)\./.test(field) : OVERRULED.has(field),
  );
}

/** Fields about which the server's dry run has something to say although they are not right. */
const OVERRULED = new Set(["package", "gpus", "cpus", "memory", "min_gpus", "name", "ssh", "jupyter"]);

function fieldsOf(...problems: readonly (Problem | null | undefined)[]): Map<string, string> {
  const found = new Map<string, string>();
  for (const problem of problems)
    for (const { field, detail } of problem?.fields ?? []) if (!found.has(field)) found.set(field, detail);
  return found;
}
