import { api, sent, type Schema } from "@/api/client";
import { useAction } from "@/api/useAction";
import type { KindName, Usage, VolumeName, What } from "@/pages/people/quotas/amounts";
import { texts } from "@/pages/people/quotas/texts";
import { useTexts } from "@/texts/texts";

export interface CellChange {
  readonly user: string;
  readonly kind: KindName | VolumeName;
  readonly what: What;
  readonly limit: number | null;
}

/** One limit of one user, and nothing beside it: two operators who edit the same row do not undo each other. */
export function useSaveQuota() {
  const t = useTexts(texts);
  return useAction<CellChange, Schema<"ListView_QuotaUsageView_">>({
    run: ({ user, kind, what, limit }) =>
      sent(api.POST("/quotas:batch", { body: { users: [user], all: false, quota: changeOf(kind, what, limit) } })),
    touches: ["/quotas", "/users", "/me"],
    optimistic: (cache, change) =>
      cache.changeItems<Usage>(
        "/quotas",
        (usage) => usage.user === change.user,
        (usage) => withLimit(usage, change),
      ),
    done: (_, { user }) => t("saved", { user }),
  });
}

function changeOf(kind: CellChange["kind"], what: What, limit: number | null) {
  return what === "storage" ? { volumes: { [kind]: limit } } : { [kind]: { [what]: limit } };
}

function withLimit(usage: Usage, { kind, what, limit }: CellChange): Usage {
  if (what === "storage") {
    const held = usage.volumes[kind];
    return held === undefined ? usage : { ...usage, volumes: { ...usage.volumes, [kind]: { ...held, limit } } };
  }
  const before = usage.kinds[kind];
  if (before === undefined) return usage;
  return { ...usage, kinds: { ...usage.kinds, [kind]: { ...before, [what]: { ...before[what], limit } } } };
}
