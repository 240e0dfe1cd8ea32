/** A flavor as it is typed, and as the API takes it. */
import type { Schema } from "@/api/client";

export type Flavor = Schema<"FlavorView">;
type Node = Schema<"NodeView">;

const GIB = 1024 ** 3;
const LABEL = /^([^=\s]+)=(.*)$/;

export interface Draft {
  name: string;
  description: string;
  models: string[];
  /** The labels as `key=value`. */
  labels: string[];
  /** Per GPU, for jobs that ask for no amount; 0: nothing. */
  cpusPerGpu: number;
  memoryGibPerGpu: number;
  /** For jobs that ask for no GPU. */
  defaultGpus: number;
}

export function labelTexts(labels: Readonly<Record<string, string>>): string[] {
  return Object.entries(labels).map(([key, value]) => `${key}=${value}`);
}

export function draftOf(flavor: Flavor | undefined): Draft {
  return {
    name: flavor?.name ?? "",
    description: flavor?.description ?? "",
    models: flavor?.models ?? [],
    labels: labelTexts(flavor?.labels ?? {}),
    cpusPerGpu: flavor?.cpus_per_gpu ?? 0,
    memoryGibPerGpu: (flavor?.memory_bytes_per_gpu ?? 0) / GIB,
    defaultGpus: flavor?.default_gpus ?? 0,
  };
}

/** The first text that is no label, or the first key that is there twice. */
export function labelFault(
  texts: readonly string[],
): { readonly label: string } | { readonly key: string } | undefined {
  const keys = new Set<string>();
  for (const text of texts) {
    const key = LABEL.exec(text)?.[1];
    if (key === undefined) return { label: text };
    if (keys.has(key)) return { key };
    keys.add(key);
  }
  return undefined;
}

export function labelsOf(texts: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    texts.flatMap((text) => {
      const found = LABEL.exec(text);
      return found === null ? [] : [[found[1] ?? "", found[2] ?? ""]];
    }),
  );
}

export function settingsOf(draft: Draft): Schema<"FlavorEdit"> {
  return {
    description: draft.description,
    models: draft.models,
    labels: labelsOf(draft.labels),
    cpus_per_gpu: draft.cpusPerGpu,
    memory_bytes_per_gpu: Math.round(draft.memoryGibPerGpu * GIB),
    default_gpus: draft.defaultGpus,
  };
}

/** The GPUs and nodes of the fleet that match a flavor, counted like on the server. */
export function matching(draft: Draft, nodes: readonly Node[]): { readonly gpus: number; readonly nodes: number } {
  const labels = Object.entries(labelsOf(draft.labels));
  const counts = nodes
    .filter((node) => labels.every(([key, value]) => node.labels[key] === value))
    .map((node) => node.gpus.filter((gpu) => draft.models.length === 0 || draft.models.includes(gpu.model)).length)
    .filter((count) => count > 0);
  return { gpus: counts.reduce((sum, count) => sum + count, 0), nodes: counts.length };
}
