import { useConfirm } from "@/parts/confirm";
import { api, sent, type Schema } from "@/api/client";
import { useAction } from "@/api/useAction";
import { DEFAULT_POOL, withMoved } from "@/pages/fleet/pools/fleet";
import { texts } from "@/pages/fleet/pools/texts";
import { useTexts } from "@/texts/texts";

type Pool = Schema<"PoolView">;
type GpuMap = Schema<"GpuMapView">;

const TOUCHES = ["/pools", "/gpus", "/groups", "/queues"];

export interface GpuMove {
  readonly pool: string;
  readonly ids: readonly string[];
}

/** Shown at once; taken back if the server refuses. */
export function useMoveGpus(onDone: () => void) {
  const t = useTexts(texts);
  return useAction<GpuMove, Schema<"PoolDetailView">>({
    run: ({ pool, ids }) =>
      sent(api.POST("/pools/{name}/gpus", { params: { path: { name: pool } }, body: { gpus: [...ids] } })),
    touches: TOUCHES,
    optimistic: (cache, { pool, ids }) =>
      cache.change<GpuMap>("/gpus/map", (map) => withMoved(map, new Set(ids), pool)),
    done: (_, { pool, ids }) => t("moved", { n: ids.length, pool }),
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

export function useDeletePool(): (pool: Pool) => void {
  const t = useTexts(texts);
  const confirm = useConfirm();
  const remove = useAction<string, unknown>({
    run: (name) => sent(api.DELETE("/pools/{name}", { params: { path: { name } } })),
    touches: TOUCHES,
    optimistic: (cache, name) => cache.dropItems<Pool>("/pools", (pool) => pool.name === name),
    done: (_, name) => t("deleted", { name }),
  });
  return (pool) => {
    const losses = [
      t("deleteGpus", { n: pool.gpus_total }),
      t("deleteQueues", { queues: pool.queues.join(", ") }),
      ...(pool.queued > 0 ? [t("deleteWaiting", { n: pool.queued })] : []),
    ];
    confirm({
      title: t("deleteTitle", { name: pool.name }),
      text: losses.join(" "),
      action: t("deleteAction"),
      onConfirm: () => remove.mutate(pool.name),
    });
  };
}
