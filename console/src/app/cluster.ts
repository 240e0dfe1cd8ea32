/**
 * The cluster that the pages about hardware and work are narrowed to, in the address as `?cluster=NAME`; none is all of them.
 * Where there is only one, nothing of this is in sight.
 */
import { useNavigate, useSearch } from "@tanstack/react-router";

import { $api, type Schema } from "@/api/client";

export type Cluster = Schema<"ClusterView">;

/** A cluster that stops answering sends no events, so its state is polled. */
const ASK_MS = 15_000;
const NARROWED: ReadonlySet<string> = new Set(["/", "/jobs", "/queue", "/nodes", "/gpus"]);

export function useClusters(): readonly Cluster[] | undefined {
  return $api.useQuery("get", "/clusters", {}, { refetchInterval: ASK_MS }).data?.items;
}

/** Empty for all of them; so is one that there is not. */
export function useCluster(): string {
  const search: Record<string, unknown> = useSearch({ strict: false });
  const clusters = useClusters();
  const name = typeof search.cluster === "string" ? search.cluster : "";
  return clusters === undefined || clusters.some((cluster) => cluster.name === name) ? name : "";
}

/** The rest of the address stays as it is. */
export function useSetCluster(): (name: string) => void {
  const navigate = useNavigate();
  return (name) =>
    void navigate({
      to: ".",
      // What is undefined does not appear in the address.
      search: (before: Record<string, unknown>) => ({ ...before, cluster: name === "" ? undefined : name }),
    });
}

/** For links from one of these pages to another: the selected cluster stays selected. */
export function useClusterSearch(): (path: string) => { cluster?: string } {
  const cluster = useCluster();
  return (path) => (cluster !== "" && NARROWED.has(path) ? { cluster } : {});
}

export function isNarrowed(path: string): boolean {
  return NARROWED.has(path);
}
