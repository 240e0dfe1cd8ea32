/** The amounts of a quota and how they are typed: three resources per kind of job, and bytes per type of volume. */
import type { Schema } from "@/api/client";

export type Usage = Schema<"QuotaUsageView">;
export type KindUsage = Schema<"KindQuotaView">;
export type Resource = "gpus" | "cpus" | "memory_bytes";
export type What = Resource | "storage";
export type KindName = Schema<"JobKind">;

export type VolumeName = Schema<"VolumeType">;

export const RESOURCES: readonly Resource[] = ["gpus", "cpus", "memory_bytes"];
export const WHATS: readonly What[] = [...RESOURCES, "storage"];
/** A bucket has no size here that could be limited. */
export const VOLUMES: readonly VolumeName[] = ["block", "filesystem", "local"];

const GIB = 2 ** 30;

/** Memory and storage are typed in GiB. */
export function isBytes(what: What): boolean {
  return what === "memory_bytes" || what === "storage";
}

/** The typed form of a limit: memory in GiB, an empty text for no limit. */
export function typed(what: What, limit: number | null): string {
  if (limit === null) return "";
  return String(isBytes(what) ? Number((limit / GIB).toFixed(3)) : limit);
}

/** The typed amount; undefined if it is not valid. */
export function parsed(what: What, text: string): number | null | undefined {
  const plain = text.trim();
  if (plain === "") return null;
  const value = Number(plain);
  if (!Number.isFinite(value) || value < 0) return undefined;
  return isBytes(what) ? Math.round(value * GIB) : value;
}
