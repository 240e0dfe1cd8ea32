/** A job's output as it is written, out of the server's stream; a connection that breaks goes on where it was. */
import { useEffect, useState } from "react";

import { PREFIX } from "@/api/client";
import { parseEvents } from "@/api/events";
import { problemOf, type Problem } from "@/api/problem";
import { breath, LogStore } from "@/pages/jobs/logs/LogStore";

export type LogState = "reading" | "live" | "complete" | "broken";

export interface Log {
  readonly store: LogStore;
  readonly state: LogState;
  readonly problem: Problem | undefined;
}

const RETRY_MS = 2_000;
/** So long without a word, and what there was is read. */
const QUIET_MS = 400;
const SLICE_MS = 10;

/** The log of one attempt and rank; nothing is read while `attempt` is 0. */
export function useLog(job: string, attempt: number, rank: number): Log {
  const [log, setLog] = useState<Log>(() => ({ store: new LogStore(), state: "reading", problem: undefined }));
  useEffect(() => {
    const store = new LogStore();
    const ended = new AbortController();
    const become = (state: LogState, problem?: Problem) => {
      if (!ended.signal.aborted)
        setLog((before) =>
          before.store === store && before.state === state && before.problem === problem
            ? before
            : { store, state, problem },
        );
    };
    setLog({ store, state: attempt === 0 ? "complete" : "reading", problem: undefined });
    if (attempt > 0)
      void read(
        `${PREFIX}/jobs/${encodeURIComponent(job)}/logs?follow=true&attempt=${attempt}&rank=${rank}`,
        store,
        become,
        ended.signal,
      );
    return () => ended.abort();
  }, [job, attempt, rank]);
  return log;
}

async function read(
  url: string,
  store: LogStore,
  become: (state: LogState, problem?: Problem) => void,
  signal: AbortSignal,
): Promise<void> {
  let place = "";
  while (!signal.aborted) {
    try {
      const answer = await fetch(url, { headers: place === "" ? {} : { "Last-Event-ID": place }, signal });
      if (!answer.ok || answer.body === null) {
        become("complete", problemOf(await answer.json().catch(() => undefined), answer.status));
        return;
      }
      const isWhole = await readEvents(answer.body, store, become, (id) => {
        place = id;
      });
      if (isWhole) {
        become("complete");
        return;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof TypeError)) throw error;
      // The network: said by the state, and tried again.
    }
    become("broken");
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}

/** True when the server said that nothing more will come. */
async function readEvents(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  store: LogStore,
  become: (state: LogState) => void,
  reached: (id: string) => void,
): Promise<boolean> {
  let began = performance.now();
  let quiet = setTimeout(() => become("live"), QUIET_MS);
  try {
    for await (const event of parseEvents(body)) {
      if (event.name === "end") return true;
      if (event.name !== "log") continue;
      const data: unknown = JSON.parse(event.data);
      if (typeof data === "object" && data !== null && "text" in data) store.append(String(data.text));
      reached(event.id);
      clearTimeout(quiet);
      quiet = setTimeout(() => become("live"), QUIET_MS);
      if (performance.now() - began > SLICE_MS) {
        await breath();
        began = performance.now();
      }
    }
    return false;
  } finally {
    clearTimeout(quiet);
  }
}
