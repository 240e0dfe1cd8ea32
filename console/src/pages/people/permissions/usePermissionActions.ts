import { api, sent, type Schema } from "@/api/client";
import { useAction } from "@/api/useAction";
import { texts } from "@/pages/people/permissions/texts";
import { useConfirm } from "@/parts/confirm";
import { useTexts } from "@/texts/texts";

export type PermissionGroup = Schema<"PermissionGroupView">;

const EVERYONE = "everyone";

/** Why a permission group cannot be deleted now. */
export function useDeleteRefusal(): (group: PermissionGroup) => string | undefined {
  const t = useTexts(texts);
  return (group) => {
    if (group.name === EVERYONE) return t("isEveryone");
    return group.users_count > 0 ? t("hasUsers", { n: group.users_count }) : undefined;
  };
}

export function useDeletePermissionGroup(): (name: string) => void {
  const t = useTexts(texts);
  const confirm = useConfirm();
  const remove = useAction<string, unknown>({
    run: (name) => sent(api.DELETE("/permission-groups/{name}", { params: { path: { name } } })),
    touches: ["/permission-groups"],
    optimistic: (cache, name) => cache.dropItems<PermissionGroup>("/permission-groups", (group) => group.name === name),
    done: (_, name) => t("deleted", { name }),
  });
  return (name) =>
    confirm({
      title: t("deleteTitle", { name }),
      text: t("deleteText"),
      action: t("deleteAction"),
      onConfirm: () => remove.mutate(name),
    });
}
