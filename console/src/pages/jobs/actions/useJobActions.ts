/** Everything that is done with a single job by one click: asked first where it destroys, shown at once where that is natural. */
import { useNavigate } from "@tanstack/react-router";

import { api, sent } from "@/api/client";
import { useAction, type Cache } from "@/api/useAction";
import { useMe } from "@/app/session";
import { asStopped, type ActionName, type Job } from "@/pages/jobs/actions/possible";
import { texts } from "@/pages/jobs/actions/texts";
import { useConfirm } from "@/parts/confirm";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

/** The actions that need one click only; resize, migrate and edit have forms. */
export type QuickAction = Exclude<ActionName, "resize" | "migrate" | "edit" | "clone">;

const DONE_TEXTS = {
  stop: "stopped",
  start: "started",
  requeue: "requeued",
  pin: "pinned",
  unpin: "unpinned",
  checkpoint: "checkpointed",
  extend: "extendedNow",
  remove: "removed",
} as const;

export function send(action: QuickAction, job: string): Promise<unknown> {
  const at = { params: { path: { job } } };
  switch (action) {
    case "stop":
      return sent(api.POST("/jobs/{job}/stop", at));
    case "start":
      return sent(api.POST("/jobs/{job}/start", at));
    case "requeue":
      return sent(api.POST("/jobs/{job}/requeue", at));
    case "pin":
      return sent(api.POST("/jobs/{job}/pin", at));
    case "unpin":
      return sent(api.POST("/jobs/{job}/unpin", at));
    case "checkpoint":
      return sent(api.POST("/jobs/{job}/checkpoint", at));
    case "extend":
      return sent(api.POST("/jobs/{job}/extend", at));
    case "remove":
      return sent(api.DELETE("/jobs/{job}", at));
  }
}

/** The cached lists and the job's own page, as if it had been done. */
export function assume(cache: Cache, action: QuickAction, job: Job): void {
  const now = LOOKS[action];
  if (now !== undefined) {
    cache.changeItems<Job>("/jobs", (item) => item.id === job.id, now);
    cache.change<Job>("/jobs/{job}", (item) => (item.id === job.id ? now(item) : item));
  } else if (action === "remove") cache.dropItems<Job>("/jobs", (item) => item.id === job.id);
}

const LOOKS: Partial<Record<QuickAction, (job: Job) => Job>> = { stop: asStopped, pin: asPinned, unpin: asUnpinned };

function asPinned(job: Job): Job {
  return { ...job, pinned_at: new Date().toISOString() };
}

function asUnpinned(job: Job): Job {
  return { ...job, pinned_at: null };
}

/** A job that waits keeps its place when a stop is taken back at once; a first pin leaves no trace. */
function undoOf(action: QuickAction, job: Job): (() => Promise<unknown>) | undefined {
  if (action === "stop" && job.state === "queued") return () => send("start", job.id);
  if (action === "pin" && job.pinned_at === null) return () => send("unpin", job.id);
  return undefined;
}

/** Do it, or ask first whether it shall be done. */
export function useJobActions(): (action: QuickAction, job: Job) => void {
  const t = useTexts(texts);
  const format = useFormat();
  const confirm = useConfirm();
  const me = useMe();
  const navigate = useNavigate();
  const act = useAction<{ action: QuickAction; job: Job }, unknown>({
    run: ({ action, job }) => send(action, job.id),
    touches: ["/jobs", "/queues", "/overview", "/panel", "/events"],
    optimistic: (cache, { action, job }) => assume(cache, action, job),
    done: (_, { action, job }) => t(DONE_TEXTS[action], { name: job.name }),
    undo: (_, { action, job }) => undoOf(action, job),
    onDone: (_, { action, job }) => {
      if (action === "remove" && window.location.pathname === `/jobs/${job.id}`) void navigate({ to: "/jobs" });
    },
  });
  return (action, job) => {
    const onConfirm = () => act.mutate({ action, job });
    const isOthers = job.user !== me.name;
    const values = { name: job.name, user: job.user, grace: format.duration(job.grace_seconds) };
    const isWaiting = job.state === "queued" || job.state === "created";
    const owner = isOthers ? ` ${t("ofOther", values)}` : "";
    if (action === "stop" && isWaiting && isOthers) {
      confirm({
        title: t("stopTitle", values),
        text: t("stopWaitingText", values) + owner,
        action: t("stopJob"),
        onConfirm,
      });
    } else if (action === "stop" && !isWaiting) {
      confirm({ title: t("stopTitle", values), text: t("stopText", values) + owner, action: t("stopJob"), onConfirm });
    } else if (action === "requeue") {
      confirm({
        title: t("requeueTitle", values),
        text: t("requeueText", values) + owner,
        action: t("requeueJob"),
        onConfirm,
      });
    } else if (action === "remove") {
      confirm({
        title: t("removeTitle", values),
        text: t("removeText", values) + owner,
        action: t("removeJob"),
        onConfirm,
      });
    } else onConfirm();
  };
}
