/** The operators' actions on packages. */
import type { UseFormReturnType } from "@mantine/form";

import { api, sent } from "@/api/client";
import { settingsOf, type Draft, type Package } from "@/pages/fleet/packages/draft";
import { texts } from "@/pages/fleet/packages/texts";
import { useDeleteMany } from "@/parts/useDeleteMany";
import { useFormAction } from "@/parts/useFormAction";
import { useTexts } from "@/texts/texts";

const TOUCHES = ["/packages", "/flavors"];

export function useSavePackage(form: UseFormReturnType<Draft>, one: Package | undefined, onDone: () => void) {
  const t = useTexts(texts);
  return useFormAction(form, {
    run: (draft) =>
      one === undefined
        ? sent(api.POST("/packages", { body: { name: draft.name, ...settingsOf(draft) } }))
        : sent(api.PATCH("/packages/{name}", { params: { path: { name: one.name } }, body: settingsOf(draft) })),
    touches: TOUCHES,
    done: (saved) => t(one === undefined ? "created" : "saved", { name: saved.name }),
    onDone,
  });
}

export function useDeletePackages() {
  const run = (names: string[]) => sent(api.POST("/packages:delete", { body: { names } }));
  return useDeleteMany({ list: "/packages", texts, touches: TOUCHES, run });
}
