/** The operators' actions on flavors. */
import type { UseFormReturnType } from "@mantine/form";

import { api, sent } from "@/api/client";
import { settingsOf, type Draft, type Flavor } from "@/pages/fleet/flavors/draft";
import { texts } from "@/pages/fleet/flavors/texts";
import { useDeleteMany } from "@/parts/useDeleteMany";
import { useFormAction } from "@/parts/useFormAction";
import { useTexts } from "@/texts/texts";

const TOUCHES = ["/flavors", "/packages"];

export function useSaveFlavor(form: UseFormReturnType<Draft>, flavor: Flavor | undefined, onDone: () => void) {
  const t = useTexts(texts);
  return useFormAction(form, {
    run: (draft) =>
      flavor === undefined
        ? sent(api.POST("/flavors", { body: { name: draft.name, ...settingsOf(draft) } }))
        : sent(api.PATCH("/flavors/{name}", { params: { path: { name: flavor.name } }, body: settingsOf(draft) })),
    touches: TOUCHES,
    done: (saved) => t(flavor === undefined ? "created" : "saved", { name: saved.name }),
    onDone,
  });
}

export function useDeleteFlavors() {
  const run = (names: string[]) => sent(api.POST("/flavors:delete", { body: { names } }));
  return useDeleteMany({ list: "/flavors", texts, touches: TOUCHES, run });
}
