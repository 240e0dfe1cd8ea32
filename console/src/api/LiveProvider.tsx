/** Keeps what is on the screen current, and shows how current it is. */
import { useQueryClient } from "@tanstack/react-query";
import { createContext, useContext, useEffect, useState, useSyncExternalStore, type ReactNode } from "react";

import type { ServerEvent } from "@/api/events";
import { Refresher, touchedBy } from "@/api/freshness";
import { LiveConnection, type LiveState } from "@/api/live";

const Context = createContext<LiveConnection | undefined>(undefined);

/** `since` is the newest event before the first question of a page was asked. */
export function LiveProvider({ since, children }: { since: number; children: ReactNode }) {
  const queries = useQueryClient();
  const [connection] = useState(() => new LiveConnection(String(since)));
  useEffect(() => {
    const refresher = new Refresher(queries);
    let isFirst = true;
    const forget = connection.onEvent((event) => {
      if (event.name === "hello") {
        // What was read during a break may be old. At the beginning the stream has every event since the first question.
        if (!isFirst) void queries.invalidateQueries();
        isFirst = false;
        return;
      }
      refresher.touch(touchedBy(event));
    });
    connection.start();
    return () => {
      forget();
      connection.stop();
    };
  }, [connection, queries]);
  return <Context value={connection}>{children}</Context>;
}

function useConnection(): LiveConnection {
  const connection = useContext(Context);
  if (connection === undefined) throw new Error("there is no LiveProvider");
  return connection;
}

export function useLiveState(): { readonly state: LiveState; readonly since: number } {
  const connection = useConnection();
  const state = useSyncExternalStore(connection.onState, () => connection.current);
  return { state, since: connection.stateSince };
}

/** Hear each event as it comes, such as to append to a list. `listener` must be stable. */
export function useLiveEvents(listener: (event: ServerEvent) => void): void {
  const connection = useConnection();
  useEffect(() => connection.onEvent(listener), [connection, listener]);
}
