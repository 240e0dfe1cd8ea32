/** A package as it is typed, and as the API takes it. */
import type { Schema } from "@/api/client";
import { parseSize, sizeText } from "@/texts/sizes";

export type Package = Schema<"PackageView">;
export type Kind = Package["kinds"][number];

export interface Draft {
  name: string;
  description: string;
  gpus: string;
  cpus: string;
  memory_bytes: string;
  flavor: string | null;
  rdma: boolean;
  kinds: Kind[];
}

export function draftOf(one: Package | undefined): Draft {
  return {
    name: one?.name ?? "",
    description: one?.description ?? "",
    gpus: String(one?.gpus ?? 1),
    cpus: String(one?.cpus ?? 8),
    memory_bytes: one === undefined ? "64GiB" : sizeText(one.memory_bytes),
    flavor: one?.flavor ?? null,
    rdma: one?.rdma ?? false,
    kinds: one?.kinds ?? [],
  };
}

/** 0, a share in thousandths, or a whole number. */
export function gpusOf(text: string): number | undefined {
  if (!/^\d+(\.\d{1,3})?$/.test(text.trim())) return undefined;
  const gpus = Number(text);
  return gpus > 1 && !Number.isInteger(gpus) ? undefined : gpus;
}

export function cpusOf(text: string): number | undefined {
  return /^\d+(\.\d+)?$/.test(text.trim()) ? Number(text) : undefined;
}

export interface Size {
  readonly gpus: number;
  readonly cpus: number;
  readonly memory: number;
  readonly rdma: boolean;
}

/** Undefined until all of it makes sense. */
export function sizeOf(draft: Draft): Size | undefined {
  const gpus = gpusOf(draft.gpus);
  const cpus = cpusOf(draft.cpus);
  const memory = parseSize(draft.memory_bytes);
  if (gpus === undefined || cpus === undefined || memory === undefined) return undefined;
  return { gpus, cpus, memory, rdma: draft.rdma };
}

export function settingsOf(draft: Draft): Schema<"PackageEdit"> {
  const size = sizeOf(draft);
  return {
    description: draft.description,
    gpus: size?.gpus ?? 0,
    cpus: size?.cpus ?? 0,
    memory_bytes: size?.memory ?? 0,
    flavor: draft.flavor,
    rdma: draft.rdma,
    kinds: draft.kinds,
  };
}
