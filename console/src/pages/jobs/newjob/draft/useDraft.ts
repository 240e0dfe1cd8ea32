/** The draft of this tab: kept over a reload, or filled from what the address names (`?clone=JOB`, `?preset=NAME`,
 * `?kind=`, `?volume=NAME`, `?dataset=NAME`). */
import { useSearch } from "@tanstack/react-router";
import { useCallback, useEffect, useState } from "react";

import { $api } from "@/api/client";
import { JOB_KINDS } from "@/api/enumerations";
import { useAll } from "@/api/useAll";
import { useMe } from "@/app/session";
import {
  changed,
  EMPTY,
  keepDraft,
  keptDraft,
  ofJob,
  ofPreset,
  type Change,
  type Draft,
} from "@/pages/jobs/newjob/draft/draft";
import { NEW_MOUNT } from "@/pages/jobs/newjob/draft/mounts";
import { useAllowedKinds } from "@/pages/jobs/newjob/steps/KindStep";

export interface Drafting {
  readonly draft: Draft;
  readonly set: (change: Change) => void;
  readonly startOver: () => void;
  /** The job that it is a copy of, while it is read and after. */
  readonly clone: {
    readonly isLoading: boolean;
    readonly error: unknown;
    readonly retry: () => void;
    readonly name: string | undefined;
  };
}

export function useDraft(): Drafting {
  const me = useMe();
  const allowed = useAllowedKinds();
  const search: Record<string, unknown> = useSearch({ strict: false });
  const origin = originOf(search);
  const [draft, setDraft] = useState<Draft>(() => first(me.name, origin, search, allowed[0] ?? "training"));
  const set = useCallback((change: Change) => setDraft((before) => changed(before, change)), []);
  useEffect(() => keepDraft(me.name, draft), [me.name, draft]);

  const clone = typeof search.clone === "string" ? search.clone : "";
  const isWanted = clone !== "" && draft.origin !== origin;
  const job = $api.useQuery("get", "/jobs/{job}", { params: { path: { job: clone } } }, { enabled: isWanted });
  const images = useAll("/images", {}, isWanted);
  useEffect(() => {
    if (isWanted && job.data !== undefined && images.data !== undefined) setDraft(ofJob(job.data, origin, images.data));
  }, [isWanted, job.data, images.data, origin]);

  const startOver = useCallback(
    () => setDraft({ ...EMPTY, origin, kind: allowed[0] ?? "training" }),
    [origin, allowed],
  );
  return {
    draft,
    set,
    startOver,
    clone: {
      isLoading: isWanted && job.error === null,
      error: isWanted ? job.error : null,
      retry: () => void job.refetch(),
      name: draft.origin.startsWith("clone=") ? draft.origin.slice(6) : undefined,
    },
  };
}

function originOf(search: Record<string, unknown>): string {
  for (const name of ["clone", "preset", "kind", "volume", "dataset"]) {
    const value = search[name];
    if (typeof value === "string" && value !== "") return `${name}=${value}`;
  }
  return "";
}

/** The stored draft, unless the address asks for something else. */
function first(user: string, origin: string, search: Record<string, unknown>, usual: Draft["kind"]): Draft {
  const kept = keptDraft(user);
  if (kept !== undefined && (kept.origin === origin || origin === "")) return kept;
  if (origin.startsWith("preset=")) return ofPreset(String(search.preset), origin);
  const kind = JOB_KINDS.find((one) => one === search.kind);
  if (origin.startsWith("kind="))
    return kind === "preset" ? ofPreset("", origin) : { ...EMPTY, origin, kind: kind ?? usual };
  const mounted = (["volume", "dataset"] as const).find((from) => origin.startsWith(`${from}=`));
  if (mounted !== undefined) {
    const mount = { ...NEW_MOUNT[mounted], source: String(search[mounted]) };
    return { ...EMPTY, origin, kind: usual, mounts: [mount] };
  }
  return { ...EMPTY, kind: usual };
}
