import { api, sent, type Schema } from "@/api/client";
import { useAction } from "@/api/useAction";
import { texts } from "@/pages/people/groups/texts";
import { useConfirm } from "@/parts/confirm";
import { useTexts } from "@/texts/texts";

type Group = Schema<"GroupView">;

export const DEFAULT_GROUP = "default";

/** Why a group cannot be deleted now. */
export function useDeleteRefusal(): (group: Group) => string | undefined {
  const t = useTexts(texts);
  return (group) => {
    if (group.name === DEFAULT_GROUP) return t("isDefault");
    if (group.users_count > 0) return t("hasUsers", { n: group.users_count });
    return group.pool === null ? undefined : t("hasPool", { pool: group.pool });
  };
}

export function useDeleteGroup(): (group: Group) => void {
  const t = useTexts(texts);
  const confirm = useConfirm();
  const remove = useAction<string, unknown>({
    run: (name) => sent(api.DELETE("/groups/{name}", { params: { path: { name } } })),
    touches: ["/groups"],
    optimistic: (cache, name) => cache.dropItems<Group>("/groups", (group) => group.name === name),
    done: (_, name) => t("deleted", { name }),
  });
  return ({ name }) =>
    confirm({
      title: t("deleteTitle", { name }),
      text: t("deleteText"),
      action: t("deleteAction"),
      onConfirm: () => remove.mutate(name),
    });
}
