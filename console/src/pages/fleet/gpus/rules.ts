/** The actions that are possible on a GPU, shown before the click, and the GPUs that a list shows. */
import type { Schema } from "@/api/client";
import type { texts } from "@/pages/fleet/gpus/texts";

export type Gpu = Schema<"GpuView">;
export const VERBS = ["mark", "reset", "test"] as const;
export type Verb = (typeof VERBS)[number];

/** The reason why not, or nothing. */
export function refusalOf(verb: Verb, gpu: Gpu): keyof typeof texts | undefined {
  if (verb === "mark") return gpu.health === "failed" ? "isFailed" : undefined;
  if (verb === "reset") return gpu.health === "healthy" && gpu.evidence.length === 0 ? "isHealthy" : undefined;
  if (gpu.jobs.length > 0) return "hasJobs";
  return gpu.reading?.lost === true ? "isLost" : undefined;
}

export function fitting(verb: Verb, gpus: readonly Gpu[]): readonly Gpu[] {
  return gpus.filter((gpu) => refusalOf(verb, gpu) === undefined);
}

export interface GpuChoice {
  readonly q: string;
  readonly health: readonly string[];
  readonly model: string;
  readonly pool: string;
  readonly node: string;
  readonly use: string;
}

export function matching(gpus: readonly Gpu[], { q, health, model, pool, node, use }: GpuChoice): readonly Gpu[] {
  const text = q.trim().toLowerCase();
  return gpus.filter(
    (gpu) =>
      (health.length === 0 || health.includes(gpu.health)) &&
      (model === "" || gpu.model === model) &&
      (pool === "" || gpu.pool === pool) &&
      (node === "" || gpu.node === node) &&
      (use === "" || (use === "free") === gpu.free) &&
      (text === "" ||
        [gpu.id, gpu.node, ...gpu.jobs.flatMap((job) => [job.user, job.id, job.name])].some((one) =>
          one?.toLowerCase().includes(text),
        )),
  );
}
