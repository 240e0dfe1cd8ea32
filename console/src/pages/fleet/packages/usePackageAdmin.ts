/** What operators do with packages. */
import { api, sent } from "@/api/client";
import type { Problem } from "@/api/problem";
import { useAction } from "@/api/useAction";
import { settingsOf, type Draft, type Package } from "@/pages/fleet/packages/draft";
import { texts } from "@/pages/fleet/packages/texts";
import { useDeleteMany } from "@/parts/useDeleteMany";
import { useTexts } from "@/texts/texts";

const TOUCHES = ["/packages", "/flavors"];

export function useSavePackage(one: Package | undefined, onDone: () => void, onProblem: (problem: Problem) => void) {
  const t = useTexts(texts);
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

export function useDeletePackages(onDone: () => void): (names: readonly string[]) => void {
  const run = (names: string[]) => sent(api.POST("/packages:delete", { body: { names } }));
  return useDeleteMany({ list: "/packages", texts, touches: TOUCHES, run, onDone });
}
