/** What operators do with flavors. */
import { api, sent } from "@/api/client";
import type { Problem } from "@/api/problem";
import { useAction } from "@/api/useAction";
import { settingsOf, type Draft, type Flavor } from "@/pages/flavors/draft";
import { words } from "@/pages/flavors/words";
import { useConfirm } from "@/parts/confirm";
import { useWords } from "@/words/words";

const TOUCHES = ["/flavors", "/packages"];

export function useSaveFlavor(flavor: Flavor | undefined, onDone: () => void, onProblem: (problem: Problem) => void) {
  const t = useWords(words);
  return useAction<Draft, Flavor>({
    run: (draft) =>
      flavor === undefined
        ? sent(api.POST("/flavors", { body: { name: draft.name, ...settingsOf(draft) } }))
        : sent(api.PATCH("/flavors/{name}", { params: { path: { name: flavor.name } }, body: settingsOf(draft) })),
    touches: TOUCHES,
    done: (saved) => t(flavor === undefined ? "created" : "saved", { name: saved.name }),
    onDone,
    onProblem,
  });
}

/** All of them or none; asked before. */
export function useDeleteFlavors(onDone: () => void) {
  const t = useWords(words);
  const confirm = useConfirm();
  const remove = useAction<readonly string[], { readonly deleted: readonly string[] }>({
    run: (names) => sent(api.POST("/flavors:delete", { body: { names: [...names] } })),
    touches: TOUCHES,
    optimistic: (cache, names) => cache.dropItems<Flavor>("/flavors", (flavor) => names.includes(flavor.name)),
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
