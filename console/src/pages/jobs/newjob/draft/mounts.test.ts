import { describe, expect, it } from "vitest";

import type { Facts, Speech } from "@/pages/jobs/newjob/draft/check";
import { checkMounts, waitingFor } from "@/pages/jobs/newjob/draft/checkMounts";
import { freePath, mountText, NEW_MOUNT, ofMount, type Mount } from "@/pages/jobs/newjob/draft/mounts";
import { texts } from "@/pages/jobs/newjob/texts";
import { say } from "@/texts/texts";

const t = say(texts, "en");
const speech: Speech = { t, kind: "training", bytes: (value) => `${value / 2 ** 30} GiB` };
const VOLUME = { id: "v-1", name: "data", owner: "ann", mine: true, type: "block", cluster: "local", may_write: true };
const volumes = [
  { ...VOLUME, state: "ready", full: false, jobs: [] },
  { ...VOLUME, id: "v-2", name: "data", owner: "bob", mine: false, may_write: false, state: "ready", jobs: [] },
  { ...VOLUME, id: "v-3", name: "far", cluster: "east", state: "ready", jobs: [] },
] as unknown as NonNullable<Facts["volumes"]>;
const facts = { volumes, datasets: [], localQuota: { held: 2 ** 30, limit: 3 * 2 ** 30 } } as unknown as Facts;

const volume = (change: Partial<Mount>): Mount => ({ ...NEW_MOUNT.volume, source: "data", ...change });

function found(...mounts: Mount[]): Record<string, string> {
  const errors: Record<string, string> = {};
  checkMounts(mounts, facts, speech, (field, text) => (errors[field] ??= text));
  return errors;
}

describe("a mount", () => {
  it.each([
    [volume({ mode: "ro" }), "data:/data:ro"],
    [volume({ source: "bob/data", mode: "ro", prefetch: true }), "bob/data:/data:ro,prefetch"],
    [{ ...NEW_MOUNT.dataset, source: "images", version: "v2" }, "dataset:images@v2:/dataset:ro"],
    [{ ...NEW_MOUNT.dataset, source: "images" }, "dataset:images:/dataset:ro"],
    [NEW_MOUNT.local, "local:10GiB:/scratch"],
  ])("is written as --mount takes it", (mount, text) => expect(mountText(mount)).toBe(text));

  it("is the same again in a copy, with the version that was used", () => {
    const view = { path: "/x", mode: "ro", volume_id: null, dataset: "d-1", prefetch: false } as const;
    const version = "ab".repeat(32);
    expect(mountText(ofMount({ ...view, kind: "dataset", source: "images@latest", version }))).toBe(
      `dataset:images@${version}:/x:ro`,
    );
  });

  it("gets a path that no other has", () =>
    expect(freePath("/data", [volume({}), volume({ path: "/data-2" })])).toBe("/data-3"));

  it.each(["data", "/", "/etc", "/proc/x", "/a/../b", "/a/", "/a:b"])("is refused at %s", (path) =>
    expect(found(volume({ path }))).toHaveProperty(["mounts.0.path"]),
  );
  it("is fine where nothing else is", () =>
    expect(found(volume({}), { ...NEW_MOUNT.local, size: "1GiB" })).toEqual({}));

  it("is distinguished from the others: same path, one within another, same volume, other cluster", () => {
    expect(found(volume({}), volume({ source: "far" }))["mounts.1.path"]).toBe("Another mount has this path");
    expect(found(volume({}), volume({ path: "/data/in" }))["mounts.1.path"]).toContain("inside /data");
    expect(found(volume({}), volume({ path: "/b" }))["mounts.1.source"]).toBe("data is mounted already");
    expect(found(volume({}), volume({ source: "far", path: "/b" }))["mounts.1.source"]).toContain("cluster east");
  });

  it("needs the right to write, and room within the quota", () => {
    expect(found(volume({ source: "bob/data" }))["mounts.0.mode"]).toBe("You may only read bob/data");
    expect(found(volume({ source: "unknown/x" }))["mounts.0.source"]).toContain("no volume unknown/x");
    expect(found({ ...NEW_MOUNT.local, size: "3GiB" })["mounts.0.size"]).toContain("leaves 2 GiB of 3 GiB");
  });
});

describe("whom a mount waits for", () => {
  const job = { id: "j-1", name: "train", user: "ann", state: "running", path: "/data" };
  const held = (mode: "ro" | "rw", state = "running") =>
    [{ ...volumes[0], jobs: [{ ...job, mode, state }] }] as unknown as Facts["volumes"];

  it("is the one who writes", () => expect(waitingFor(volume({ mode: "ro" }), held("rw"), t)).toContain("train (j-1)"));
  it("are those who read, for one who would write", () => {
    expect(waitingFor(volume({ mode: "rw" }), held("ro"), t)).toContain("1 job reads data now");
    expect(waitingFor(volume({ mode: "ro" }), held("ro"), t)).toBeUndefined();
  });
  it("is no job that waits too", () =>
    expect(waitingFor(volume({ mode: "rw" }), held("rw", "queued"), t)).toBeUndefined());
});
