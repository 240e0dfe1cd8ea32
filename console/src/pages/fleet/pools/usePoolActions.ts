import { api, sent, type Schema } from "@/api/client";
import { useAction } from "@/api/useAction";
import { DEFAULT_POOL, withMoved } from "@/pages/fleet/pools/fleet";
import { texts } from "@/pages/fleet/pools/texts";
import { useDeleteEach } from "@/parts/useDeleteEach";
import { useTexts } from "@/texts/texts";

type Pool = Schema<"PoolView">;
type GpuMap = Schema<"GpuMapView">;

const TOUCHES = ["/pools", "/gpus", "/groups", "/queues"];

export interface GpuMove {
  readonly pool: string;
  readonly ids: readonly string[];
}

function send({ pool, ids }: GpuMove): Promise<Schema<"PoolDetailView">> {
  return sent(api.POST("/pools/{name}/gpus", { params: { path: { name: pool } }, body: { gpus: [...ids] } }));
}

/** Shown at once; taken back if the server refuses. */
export function useMoveGpus(onDone: () => void) {
  const t = useTexts(texts);
  return useAction<GpuMove & { readonly back: readonly GpuMove[] }, Schema<"PoolDetailView">>({
    run: send,
    touches: TOUCHES,
    optimistic: (cache, { pool, ids }) =>
      cache.change<GpuMap>("/gpus/map", (map) => withMoved(map, new Set(ids), pool)),
    done: (_, { pool, ids }) => t("moved", { n: ids.length, pool }),
    undo:
      (_, { back }) =>
      () =>
        Promise.all(back.map(send)),
    onDone,
  });
}

/** Why a pool cannot be deleted now. */
export function useDeleteRefusal(): (pool: Pool) => string | undefined {
  const t = useTexts(texts);
  return (pool) => {
    if (pool.name === DEFAULT_POOL) return t("isDefault");
    if (pool.group !== null) return t("hasGroup", { group: pool.group });
    if (pool.running > 0) return t("hasJobs", { n: pool.running });
    return pool.gpus_allocated > 0 ? t("gpusHeld") : undefined;
  };
}

/** Asks once, deletes each pool for itself, and reports the result of each. */
export function useDeletePools(pools: readonly Pool[]): (names: readonly string[]) => void {
  const t = useTexts(texts);
  return useDeleteEach({
    run: (name) => sent(api.DELETE("/pools/{name}", { params: { path: { name } } })),
    touches: TOUCHES,
    question: (names) => {
      const chosen = pools.filter((pool) => names.includes(pool.name));
      const waiting = sum(chosen.map((pool) => pool.queued));
      const losses = [
        t("deleteGpus", { n: sum(chosen.map((pool) => pool.gpus_total)) }),
        t("deleteQueues", { queues: chosen.flatMap((pool) => pool.queues).join(", ") }),
        ...(waiting > 0 ? [t("deleteWaiting", { n: waiting })] : []),
      ];
      return {
        title: t("deleteTitle", { n: names.length, names: names.join(", ") }),
        text: losses.join(" "),
        action: t("deleteAction", { n: names.length }),
      };
    },
  });
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0);
}
