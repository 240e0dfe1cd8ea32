/** The GPUs of the nodes that a defragmentation touches, as they are and as they would be. */
import type { Schema } from "@/api/client";

export type Look = "free" | "stays" | "moves";

export interface Place {
  readonly id: string;
  readonly look: Look;
  /** The job that uses the GPU, where a job moves. */
  readonly job: string;
}

export interface NodePlaces {
  readonly node: string;
  readonly before: readonly Place[];
  readonly after: readonly Place[];
}

export function places(plan: Schema<"DefragmentationView">, gpus: readonly Schema<"GpuView">[]): NodePlaces[] {
  const leaving = movedGpus(plan, "before");
  const arriving = movedGpus(plan, "after");
  const touched = new Set(plan.moves.flatMap((move) => [move.from_node, move.to_node]));
  return [...touched].sort().map((node) => {
    const own = gpus.filter((gpu) => gpu.node === node);
    return {
      node,
      before: own.map((gpu) => placed(gpu, leaving.get(gpu.id), false)),
      after: own.map((gpu) => placed(gpu, arriving.get(gpu.id), leaving.has(gpu.id))),
    };
  });
}

function movedGpus(plan: Schema<"DefragmentationView">, when: "before" | "after"): ReadonlyMap<string, string> {
  return new Map(
    plan.moves.flatMap((move) =>
      move[when].grants.flatMap((grant) => grant.gpus.map((gpu) => [gpu, move.job] as const)),
    ),
  );
}

function placed(gpu: Schema<"GpuView">, job: string | undefined, wasLeft: boolean): Place {
  if (job !== undefined) return { id: gpu.id, look: "moves", job };
  return { id: gpu.id, look: wasLeft || gpu.free ? "free" : "stays", job: "" };
}
