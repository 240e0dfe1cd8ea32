import { $api, type Schema } from "@/api/client";

const UNFINISHED = ["created", "queued", "starting", "running"] as const;
const MOST = 500;

/** Jobs in the viewer's sight that have not ended and name an image, by `owner/name`. */
export function useUsedBy(images: readonly Schema<"ImageView">[] | undefined): ReadonlyMap<string, readonly string[]> {
  const { data } = $api.useQuery("get", "/jobs", { params: { query: { state: [...UNFINISHED], limit: MOST } } });
  const used = new Map<string, string[]>();
  for (const image of images ?? []) {
    const names = data?.items.filter((job) => isMeant(image, job)).map((job) => job.name) ?? [];
    if (names.length > 0) used.set(keyOf(image), names);
  }
  return used;

  /** Whether a job uses this image: of several images with the same name, a job uses its user's own first. */
  function isMeant(image: Schema<"ImageView">, job: Schema<"JobView">): boolean {
    if (job.image === `${image.owner}/${image.name}`) return true;
    if (job.image !== image.name) return false;
    const hasOwn = images?.some((other) => other.name === image.name && other.owner === job.user);
    return image.owner === job.user || !hasOwn;
  }
}

export function keyOf(image: Pick<Schema<"ImageView">, "owner" | "name">): string {
  return `${image.owner}/${image.name}`;
}
