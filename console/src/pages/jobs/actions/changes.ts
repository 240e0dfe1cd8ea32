/** The possible changes of a running job's GPUs. */
import type { Schema } from "@/api/client";

export type Change = { readonly gpus: number } | { readonly to: string | null };

/** "node-a: 0, 1": nodes with their GPUs, whose ids begin with the node. */
export function movePlaces(allocation: Schema<"AllocationView">): string {
  return allocation.grants
    .map((grant) => [grant.node, gpuNames(grant)].filter((part) => part !== "").join(": "))
    .join("; ");
}

function gpuNames(grant: Schema<"GrantView">): string {
  return grant.gpus
    .map((gpu) => (gpu.startsWith(`${grant.node}/`) ? gpu.slice(grant.node.length + 1) : gpu))
    .join(", ");
}
