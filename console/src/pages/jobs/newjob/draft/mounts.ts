/** The fields of a mount, and its text form, which all interfaces share. */
import type { Schema } from "@/api/client";

/** Where the data of a mount is: a volume, a version of a dataset, or room on the node that goes with the attempt. */
export type MountFrom = "volume" | "dataset" | "local";
export const MOUNT_SOURCES: readonly MountFrom[] = ["volume", "dataset", "local"];

export interface Mount {
  readonly from: MountFrom;
  /** The volume or the dataset, as a job calls it. */
  readonly source: string;
  /** For a dataset: a tag or a commit. */
  readonly version: string;
  /** For local storage: its size. */
  readonly size: string;
  readonly path: string;
  readonly mode: "ro" | "rw";
  /** All of it is on the node before the job starts. */
  readonly prefetch: boolean;
}

export const NEW_MOUNT: Readonly<Record<MountFrom, Mount>> = {
  volume: { from: "volume", source: "", version: "", size: "", path: "/data", mode: "rw", prefetch: false },
  dataset: { from: "dataset", source: "", version: "", size: "", path: "/dataset", mode: "ro", prefetch: false },
  local: { from: "local", source: "", version: "", size: "10GiB", path: "/scratch", mode: "rw", prefetch: false },
};

/** `data:/data:ro`, `dataset:images@v2:/images:ro`, `local:10GiB:/scratch`: as `--mount` takes it. */
export function mountText({ from, source, version, size, path, mode, prefetch }: Mount): string {
  const early = prefetch ? ",prefetch" : "";
  if (from === "local") return `local:${size.trim()}:${path}`;
  if (from === "dataset") return `dataset:${source}${version === "" ? "" : `@${version}`}:${path}:ro${early}`;
  return `${source}:${path}:${mode}${early}`;
}

/** The same mount for another job: of a dataset the very version that this one used. */
export function ofMount({ kind, source, path, mode, version, prefetch }: Schema<"MountView">): Mount {
  if (kind === "local") return { ...NEW_MOUNT.local, path, size: source };
  if (kind === "dataset") {
    const [name = "", asked = ""] = source.split("@");
    return { ...NEW_MOUNT.dataset, path, source: name, version: version ?? asked, prefetch };
  }
  return { ...NEW_MOUNT.volume, path, source, mode: mode === "ro" ? "ro" : "rw", prefetch };
}

/** The first of the usual paths that no other mount has. */
export function freePath(wanted: string, mounts: readonly Mount[]): string {
  const taken = new Set(mounts.map((mount) => mount.path.trim()));
  if (!taken.has(wanted)) return wanted;
  let number = 2;
  while (taken.has(`${wanted}-${number}`)) number += 1;
  return `${wanted}-${number}`;
}
