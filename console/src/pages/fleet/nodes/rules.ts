/** The actions that are possible on a node, shown before the click. The server decides by the same rules. */
import type { Schema } from "@/api/client";
import type { texts } from "@/pages/fleet/nodes/texts";

export type Node = Schema<"NodeView">;
export const VERBS = ["cordon", "uncordon", "drain", "remove"] as const;
export type Verb = (typeof VERBS)[number];

/** The reason why not, or nothing. */
export function refusalOf(verb: Verb, node: Node): keyof typeof texts | undefined {
  if (verb === "cordon") return node.withheld === "cordoned" ? "isCordoned" : undefined;
  if (verb === "drain") return node.withheld === "draining" ? "isDraining" : undefined;
  // What its engine withholds by itself an operator may release too.
  if (verb === "uncordon") return node.withheld === "ready" && node.state !== "cordoned" ? "isReady" : undefined;
  if (node.jobs.length > 0) return "hasJobs";
  // Whether the engine has forgotten a node that is down only the server knows.
  return node.state === "down" ? undefined : "isThere";
}

export function fitting(verb: Verb, nodes: readonly Node[]): readonly Node[] {
  return nodes.filter((node) => refusalOf(verb, node) === undefined);
}

export interface NodeChoice {
  readonly q: string;
  readonly state: string;
  readonly model: string;
}

export function matching(nodes: readonly Node[], { q, state, model }: NodeChoice): readonly Node[] {
  const text = q.trim().toLowerCase();
  return nodes.filter(
    (node) =>
      (state === "" || node.state === state) &&
      (model === "" || node.gpus.some((gpu) => gpu.model === model)) &&
      (text === "" ||
        [
          node.id,
          ...Object.entries(node.labels).map(([name, value]) => `${name}=${value}`),
          ...node.jobs.map((job) => job.user),
        ].some((one) => one.toLowerCase().includes(text))),
  );
}
