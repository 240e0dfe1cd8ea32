/** Whether any node could ever run a package, whatever runs there now: the fleet against what it asks for. */
import type { Schema } from "@/api/client";

export type Node = Schema<"NodeView">;
type Flavor = Schema<"FlavorView">;

export interface Asked {
  readonly gpus: number;
  readonly cpus: number;
  readonly memory: number;
  readonly rdma: boolean;
  readonly models: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
}

export interface Fit {
  readonly able: readonly string[];
  readonly all: number;
  /** The resources that no node has enough of, with the most that one has. */
  readonly lacks: readonly (
    | { readonly what: "gpus" | "cpus" | "memory"; readonly most: number }
    | { readonly what: "labels"; readonly labels: string }
  )[];
}

export function askedBy(
  size: { readonly gpus: number; readonly cpus: number; readonly memory: number; readonly rdma: boolean },
  flavor: Flavor | undefined,
): Asked {
  const labels = { ...(flavor?.labels ?? {}), ...(size.rdma ? { rdma: "true" } : {}) };
  return { ...size, models: flavor?.models ?? [], labels };
}

export function fitOf(asked: Asked, nodes: readonly Node[]): Fit {
  const labelled = nodes.filter((node) =>
    Object.entries(asked.labels).every(([key, value]) => node.labels[key] === value),
  );
  const able = labelled.filter(
    (node) => gpusTogether(node, asked) >= asked.gpus && node.cpus >= asked.cpus && node.memory_bytes >= asked.memory,
  );
  return {
    able: able.map((node) => node.id),
    all: nodes.length,
    lacks: able.length > 0 ? [] : lacksOf(asked, labelled),
  };
}

function lacksOf(asked: Asked, nodes: readonly Node[]): Fit["lacks"] {
  if (nodes.length === 0) {
    const labels = Object.entries(asked.labels).map(([key, value]) => `${key}=${value}`);
    return labels.length === 0 ? [] : [{ what: "labels", labels: labels.join(", ") }];
  }
  const most = {
    gpus: Math.max(...nodes.map((node) => gpusTogether(node, asked))),
    cpus: Math.max(...nodes.map((node) => node.cpus)),
    memory: Math.max(...nodes.map((node) => node.memory_bytes)),
  };
  return (["gpus", "cpus", "memory"] as const)
    .filter((what) => most[what] < asked[what])
    .map((what) => ({ what, most: most[what] }));
}

/** A job's GPUs on a node are of one model and one pool. */
function gpusTogether(node: Node, asked: Asked): number {
  const counts = new Map<string, number>();
  for (const gpu of node.gpus) {
    if (asked.models.length > 0 && !asked.models.includes(gpu.model)) continue;
    const kind = `${gpu.pool}/${gpu.model}`;
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }
  return Math.max(0, ...counts.values());
}
