/** The requests about questions: ask, cancel, ask again, delete. */
import { Ban, RotateCcw, Trash2 } from "lucide-react";

import { api, sent, type Schema } from "@/api/client";
import type { Problem } from "@/api/problem";
import { useAction } from "@/api/useAction";
import { isOver, type Simulation } from "@/pages/whatif/numbers";
import { texts } from "@/pages/whatif/texts";
import { useConfirm } from "@/parts/confirm";
import type { RowAction } from "@/parts/RowMenu";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

const TOUCHES = ["/simulations"];

export function useAsk(onDone: (asked: Simulation) => void, onProblem: (problem: Problem) => void) {
  const t = useTexts(texts);
  return useAction<Schema<"SimulationCreate">, Simulation>({
    run: (body) => sent(api.POST("/simulations", { body })),
    touches: TOUCHES,
    done: ({ name }) => t("asksNow", { name }),
    onDone,
    onProblem,
  });
}

/** The actions on a question; `onGone` is called after it was deleted. */
export function useSimulationActions(onGone?: () => void): (simulation: Simulation) => RowAction[] {
  const t = useTexts(texts);
  const c = useTexts(common);
  const confirm = useConfirm();
  const at = (id: string) => ({ params: { path: { id } } });
  const cancel = useAction<Simulation, Simulation>({
    run: ({ id }) => sent(api.POST("/simulations/{id}/cancel", at(id))),
    touches: TOUCHES,
    done: (_, { name }) => t("cancelled", { name }),
  });
  const again = useAction<Simulation, Simulation>({
    run: ({ id }) => sent(api.POST("/simulations/{id}/again", at(id))),
    touches: TOUCHES,
    done: (_, { name }) => t("asksAgain", { name }),
  });
  const remove = useAction<Simulation, unknown>({
    run: ({ id }) => sent(api.DELETE("/simulations/{id}", at(id))),
    touches: TOUCHES,
    optimistic: (cache, { id }) => cache.dropItems<Simulation>("/simulations", (one) => one.id === id),
    done: (_, { name }) => t("deleted", { name }),
    onDone: () => onGone?.(),
  });
  return (simulation) => [
    {
      label: t("cancel"),
      icon: Ban,
      refusal: isOver(simulation) ? t("cannotCancel") : undefined,
      onClick: () => cancel.mutate(simulation),
    },
    {
      label: t("again"),
      icon: RotateCcw,
      refusal: isOver(simulation) ? undefined : t("cannotAgain"),
      onClick: () => again.mutate(simulation),
    },
    {
      label: c("delete"),
      icon: Trash2,
      danger: true,
      onClick: () =>
        confirm({
          title: t("deleteTitle", { name: simulation.name }),
          text: t("deleteText"),
          action: t("deleteAction"),
          onConfirm: () => remove.mutate(simulation),
        }),
    },
  ];
}
