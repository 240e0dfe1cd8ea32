/** What operators do with flavors. */
import { api, sent } from "@/api/client";
import type { Problem } from "@/api/problem";
import { useAction } from "@/api/useAction";
import { settingsOf, type Draft, type Flavor } from "@/pages/fleet/flavors/draft";
import { texts } from "@/pages/fleet/flavors/texts";
import { useDeleteMany } from "@/parts/useDeleteMany";
import { useTexts } from "@/texts/texts";

const TOUCHES = ["/flavors", "/packages"];

export function useSaveFlavor(flavor: Flavor | undefined, onDone: () => void, onProblem: (problem: Problem) => void) {
  const t = useTexts(texts);
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

export function useDeleteFlavors(onDone: () => void): (names: readonly string[]) => void {
  const run = (names: string[]) => sent(api.POST("/flavors:delete", { body: { names } }));
  return useDeleteMany({ list: "/flavors", texts, touches: TOUCHES, run, onDone });
}
