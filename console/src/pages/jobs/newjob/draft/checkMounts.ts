/** The problems of a draft's mounts, and the mounts that make the job wait. */
import type { Facts, Report, Speech } from "@/pages/jobs/newjob/draft/check";
import type { Mount } from "@/pages/jobs/newjob/draft/mounts";
import { parseSize } from "@/texts/sizes";

type Volume = NonNullable<Facts["volumes"]>[number];

/** The server's rules for paths: the system's own files must stay where they are. */
const LONGEST_PATH = 255;
const NOT_IN_PATH = /[\x00-\x1f\x7f:,]/;
const SYSTEM_PATHS = new Set(["/", "/bin", "/boot", "/etc", "/lib", "/lib64", "/sbin", "/tmp", "/usr", "/var"]);
const KERNEL_PATHS = new Set(["dev", "proc", "run", "sys"]);

export function checkMounts(mounts: readonly Mount[], facts: Facts, speech: Speech, report: Report): void {
  for (const [at, mount] of mounts.entries()) {
    const before = mounts.slice(0, at);
    checkPath(mount, at, mounts, speech, report);
    if (mount.from === "volume") checkVolume(mount, at, before, facts, speech, report);
    else if (mount.from === "dataset") checkDataset(mount, at, facts, speech, report);
    else checkLocal(mount, at, facts, speech, report);
  }
}

/** A volume as a job calls it: one's own by its name, another's with the owner. */
export function volumeOf(source: string, volumes: Facts["volumes"]): Volume | undefined {
  return volumes?.find(
    (one) => one.id === source || `${one.owner}/${one.name}` === source || (one.mine && one.name === source),
  );
}

export function datasetOf(
  source: string,
  datasets: Facts["datasets"],
): NonNullable<Facts["datasets"]>[number] | undefined {
  return datasets?.find(
    (one) => one.id === source || `${one.owner}/${one.name}` === source || (one.mine && one.name === source),
  );
}

function checkPath({ path }: Mount, at: number, mounts: readonly Mount[], { t }: Speech, report: Report): void {
  const field = `mounts.${at}.path`;
  const parts = path.split("/");
  if (!path.startsWith("/") || path.length > LONGEST_PATH || NOT_IN_PATH.test(path))
    return report(field, t("mountPathBad"), path === "");
  if (path !== "/" && parts.slice(1).some((part) => part === "" || part === "." || part === ".."))
    return report(field, t("mountPathBad"), path.endsWith("/"));
  if (SYSTEM_PATHS.has(path) || KERNEL_PATHS.has(parts[1] ?? "")) return report(field, t("mountPathSystem"));
  for (const [index, other] of mounts.entries()) {
    if (index < at && other.path === path) return report(field, t("mountPathTwice"));
    if (index !== at && path.startsWith(`${other.path}/`))
      return report(field, t("mountPathInside", { other: other.path }));
  }
}

function checkVolume(
  { source, mode }: Mount,
  at: number,
  before: readonly Mount[],
  { volumes }: Facts,
  { t }: Speech,
  report: Report,
): void {
  const field = `mounts.${at}.source`;
  if (source === "") return report(field, t("mountVolumeMissing"), true);
  if (volumes === undefined) return;
  const volume = volumeOf(source, volumes);
  if (volume === undefined) return report(field, t("mountVolumeGone", { name: source }));
  if (volume.state === "deleting") return report(field, t("mountDeleting", { name: source }));
  const others = before.flatMap((one) => (one.from === "volume" ? (volumeOf(one.source, volumes) ?? []) : []));
  if (others.some((one) => one.id === volume.id)) return report(field, t("mountVolumeTwice", { name: source }));
  const apart = others.find((one) => one.cluster !== volume.cluster);
  if (apart !== undefined)
    report(
      field,
      t("mountClusters", {
        name: volume.name,
        cluster: volume.cluster,
        other: apart.name,
        otherCluster: apart.cluster,
      }),
    );
  if (mode === "rw" && !volume.may_write) report(`mounts.${at}.mode`, t("mountReadOnly", { name: source }));
}

function checkDataset({ source }: Mount, at: number, { datasets }: Facts, { t }: Speech, report: Report): void {
  const field = `mounts.${at}.source`;
  if (source === "") return report(field, t("mountDatasetMissing"), true);
  if (datasets === undefined) return;
  const dataset = datasetOf(source, datasets);
  if (dataset === undefined) report(field, t("mountDatasetGone", { name: source }));
  else if (dataset.versions === 0) report(field, t("mountDatasetEmpty", { name: source }));
}

function checkLocal({ size }: Mount, at: number, { localQuota }: Facts, { t, bytes }: Speech, report: Report): void {
  const field = `mounts.${at}.size`;
  const asked = parseSize(size);
  if (asked === undefined || asked === 0) return report(field, t("sizeBad"), size.trim() === "");
  const limit = localQuota?.limit ?? null;
  if (localQuota === undefined || limit === null) return;
  const left = Math.max(0, limit - localQuota.held);
  if (asked > left) report(field, t("mountOverQuota", { asked: bytes(asked), left: bytes(left), limit: bytes(limit) }));
}

const HOLDING = new Set(["starting", "running", "stopping"]);

/** The jobs that keep a job with this mount waiting at present; the scheduler decides when it starts. */
export function waitingFor(mount: Mount, volumes: Facts["volumes"], t: Speech["t"]): string | undefined {
  const volume = mount.from === "volume" ? volumeOf(mount.source, volumes) : undefined;
  if (volume === undefined) return undefined;
  if (volume.full && mount.mode === "rw") return t("mountFull", { name: volume.name });
  if (volume.type !== "block") return undefined;
  const holders = volume.jobs.filter((job) => HOLDING.has(job.state));
  const writer = holders.find((job) => job.mode === "rw");
  if (writer !== undefined) return t("mountWritten", { job: `${writer.name} (${writer.id})`, name: volume.name });
  if (mount.mode === "ro" || holders.length === 0) return undefined;
  const names = holders.slice(0, 3).map((job) => job.name);
  return t("mountRead", {
    n: holders.length,
    name: volume.name,
    jobs: holders.length > 3 ? `${names.join(", ")} …` : names.join(", "),
  });
}
