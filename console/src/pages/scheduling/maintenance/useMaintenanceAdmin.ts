/** Actions of operators on maintenance windows. */
import type { UseFormReturnType } from "@mantine/form";

import { api, sent } from "@/api/client";
import { useAction } from "@/api/useAction";
import { texts } from "@/pages/scheduling/maintenance/texts";
import { createOf, editOf, type Draft, type MaintenanceWindow } from "@/pages/scheduling/maintenance/window";
import { useConfirm } from "@/parts/confirm";
import { useFormAction } from "@/parts/useFormAction";
import { useTexts } from "@/texts/texts";

const TOUCHES = ["/maintenance-windows", "/nodes", "/gpus", "/jobs"];

export function useSaveWindow(
  form: UseFormReturnType<Draft>,
  window: MaintenanceWindow | undefined,
  onDone: () => void,
) {
  const t = useTexts(texts);
  return useFormAction(form, {
    run: (draft) =>
      window === undefined
        ? sent(api.POST("/maintenance-windows", { body: createOf(draft) }))
        : sent(
            api.PATCH("/maintenance-windows/{name}", {
              params: { path: { name: window.name } },
              body: editOf(draft, window),
            }),
          ),
    touches: TOUCHES,
    done: (saved) => t(window === undefined ? "created" : "saved", { name: saved.name }),
    onDone,
  });
}

export function useDeleteWindow(): (window: MaintenanceWindow) => void {
  const t = useTexts(texts);
  const confirm = useConfirm();
  const remove = useAction<MaintenanceWindow, unknown>({
    run: ({ name }) => sent(api.DELETE("/maintenance-windows/{name}", { params: { path: { name } } })),
    touches: TOUCHES,
    optimistic: (cache, { name }) =>
      cache.dropItems<MaintenanceWindow>("/maintenance-windows", (one) => one.name === name),
    done: (_, { name }) => t("deleted", { name }),
  });
  return (window) =>
    confirm({
      title: t("deleteTitle", { name: window.name }),
      text: t("deleteText"),
      action: t("deleteAction"),
      onConfirm: () => remove.mutate(window),
    });
}
