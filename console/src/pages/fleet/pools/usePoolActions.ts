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
  /** GPUs with running jobs follow when these have ended. */
  readonly whenFree: boolean;
}

function send({ pool, ids, whenFree }: GpuMove): Promise<Schema<"PoolDetailView">> {
  const body = { gpus: [...ids], when_free: whenFree };
  return sent(api.POST("/pools/{name}/gpus", { params: { path: { name: pool } }, body }));
}

/** Shown at once; taken back if the server refuses. */
export function useMoveGpus(onDone: () => void) {
  const t = useTexts(texts);
  return useAction<GpuMove & { readonly back: readonly GpuMove[] }, Schema<"PoolDetailView">>({
    run: send,
    touches: TOUCHES,
    optimistic: (cache, { pool, ids }) =>
      cache.change<GpuMap>("/gpus/map", (map) => withMoved(map, new Set(ids), pool)),
    done: ({ gpus }, { pool, ids }) => {
      const here = new Set(gpus.map((gpu) => gpu.id));
      const arrived = ids.filter((id) => here.has(id)).length;
      const n = ids.length - arrived;
      return [
        ...(arrived > 0 ? [t("moved", { n: arrived, pool })] : []),
        ...(n > 0 ? [t("planned", { n, pool })] : []),
      ].join(" ");
    },
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
