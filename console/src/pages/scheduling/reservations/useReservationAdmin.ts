/** The operators' actions on reservations. */
import type { UseFormReturnType } from "@mantine/form";

import { api, sent } from "@/api/client";
import { useAction } from "@/api/useAction";
import type { Reservation } from "@/pages/scheduling/reservations/calendar";
import { createOf, editOf, type Draft } from "@/pages/scheduling/reservations/draft";
import { texts } from "@/pages/scheduling/reservations/texts";
import { useConfirm } from "@/parts/confirm";
import { useFormAction } from "@/parts/useFormAction";
import { useTexts } from "@/texts/texts";

const TOUCHES = ["/reservations", "/queues", "/jobs", "/packages"];

export function useSaveReservation(
  form: UseFormReturnType<Draft>,
  reservation: Reservation | undefined,
  onDone: (name: string) => void,
) {
  const t = useTexts(texts);
  return useFormAction(form, {
    run: (draft) =>
      reservation === undefined
        ? sent(api.POST("/reservations", { body: createOf(draft) }))
        : sent(
            api.PATCH("/reservations/{name}", { params: { path: { name: reservation.name } }, body: editOf(draft) }),
          ),
    touches: TOUCHES,
    done: (saved) => t(reservation === undefined ? "created" : "saved", { name: saved.name }),
    onDone: (saved) => onDone(saved.name),
  });
}

export function useDeleteReservation(onDone: () => void): (reservation: Reservation) => void {
  const t = useTexts(texts);
  const confirm = useConfirm();
  const remove = useAction<Reservation, unknown>({
    run: ({ name }) => sent(api.DELETE("/reservations/{name}", { params: { path: { name } } })),
    touches: TOUCHES,
    optimistic: (cache, { name }) => cache.dropItems<Reservation>("/reservations", (one) => one.name === name),
    done: (_, { name }) => t("deleted", { name }),
    onDone,
  });
  return (reservation) =>
    confirm({
      title: t("deleteTitle", { name: reservation.name }),
      text: t("deleteText", { n: reservation.gpu_count }),
      action: t("deleteAction"),
      onConfirm: () => remove.mutate(reservation),
    });
}
