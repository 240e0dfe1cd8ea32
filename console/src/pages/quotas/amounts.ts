/** The three things that a quota limits, and how their limits are typed. */
import type { Schema } from "@/api/client";

export type Usage = Schema<"QuotaUsageView">;
export type KindUsage = Schema<"KindQuotaView">;
export type What = "gpus" | "cpus" | "memory_bytes";
export type KindName = "training" | "distributed" | "preset" | "workbench";

export const WHATS: readonly What[] = ["gpus", "cpus", "memory_bytes"];
export const KINDS: readonly KindName[] = ["training", "distributed", "preset", "workbench"];

const GIB = 2 ** 30;

/** As it is typed: memory in GiB, nothing for no limit. */
export function typed(what: What, limit: number | null): string {
  if (limit === null) return "";
  return String(what === "memory_bytes" ? Number((limit / GIB).toFixed(3)) : limit);
}

/** What was typed; undefined where it is no amount. */
export function parsed(what: What, text: string): number | null | undefined {
  const plain = text.trim();
  if (plain === "") return null;
  const value = Number(plain);
  if (!Number.isFinite(value) || value < 0) return undefined;
  return what === "memory_bytes" ? Math.round(value * GIB) : value;
}

export function isFull({ held, limit }: Schema<"HeldView">): boolean {
  return limit !== null && held >= limit;
}

/** A part of 0 … 1, over a limit of nothing too. */
export function part({ held, limit }: Schema<"HeldView">): number | null {
  if (limit === null) return null;
  return limit === 0 ? (held > 0 ? 1 : 0) : held / limit;
}
