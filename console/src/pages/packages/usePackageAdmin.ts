/** What operators do with packages. */
import { api, sent } from "@/api/client";
import type { Problem } from "@/api/problem";
import { useAction } from "@/api/useAction";
import { settingsOf, type Draft, type Package } from "@/pages/packages/draft";
import { words } from "@/pages/packages/words";
import { useConfirm } from "@/parts/confirm";
import { useWords } from "@/words/words";

const TOUCHES = ["/packages", "/flavors"];

export function useSavePackage(one: Package | undefined, onDone: () => void, onProblem: (problem: Problem) => void) {
  const t = useWords(words);
  return useAction<Draft, Package>({
    run: (draft) =>
      one === undefined
        ? sent(api.POST("/packages", { body: { name: draft.name, ...settingsOf(draft) } }))
        : sent(api.PATCH("/packages/{name}", { params: { path: { name: one.name } }, body: settingsOf(draft) })),
    touches: TOUCHES,
    done: (saved) => t(one === undefined ? "created" : "saved", { name: saved.name }),
    onDone,
    onProblem,
  });
}

/** All of them or none; asked before. */
export function useDeletePackages(onDone: () => void) {
  const t = useWords(words);
  const confirm = useConfirm();
  const remove = useAction<readonly string[], { readonly deleted: readonly string[] }>({
    run: (names) => sent(api.POST("/packages:delete", { body: { names: [...names] } })),
    touches: TOUCHES,
    optimistic: (cache, names) => cache.dropItems<Package>("/packages", (one) => names.includes(one.name)),
    done: ({ deleted }) => t("deleted", { n: deleted.length }),
    onDone,
  });
  return (names: readonly string[]) =>
    confirm({
      title:
        names.length === 1 ? t("deleteTitle", { name: names[0] ?? "" }) : t("deleteTitleMany", { n: names.length }),
      text: t("deleteText", { n: names.length }),
      action: t("deleteAction", { n: names.length }),
      onConfirm: () => remove.mutate(names),
    });
}
