import { api, sent, type Schema } from "@/api/client";
import { useAction } from "@/api/useAction";
import { useConfirm } from "@/parts/confirm";
import type { Bench } from "@/pages/workbenches/useWorkbenches";
import { texts } from "@/pages/workbenches/texts";
import { useTexts } from "@/texts/texts";

const TOUCHES = ["/workbenches", "/jobs", "/overview", "/me/quota"];

/** Start at once; stop and remove after saying what that means. */
export function useBenchActions() {
  const t = useTexts(texts);
  const confirm = useConfirm();
  const start = useAction<Bench, Schema<"WorkbenchView">>({
    run: ({ id }) => sent(api.POST("/workbenches/{workbench}/start", { params: { path: { workbench: id } } })),
    touches: TOUCHES,
    done: (_, { name }) => t("started", { name }),
    optimistic: (cache, { id }) =>
      cache.changeItems<Bench>(
        "/workbenches",
        (one) => one.id === id,
        (one) => ({ ...one, state: "queued", message: "" }),
      ),
  });
  const stop = useAction<Bench, Schema<"WorkbenchView">>({
    run: ({ id }) => sent(api.POST("/workbenches/{workbench}/stop", { params: { path: { workbench: id } } })),
    touches: TOUCHES,
    done: (_, { name }) => t("stopped", { name }),
    optimistic: (cache, { id }) =>
      cache.changeItems<Bench>(
        "/workbenches",
        (one) => one.id === id,
        (one) => ({ ...one, state: "stopping" }),
      ),
  });
  const remove = useAction<Bench, unknown>({
    run: ({ id }) => sent(api.DELETE("/workbenches/{workbench}", { params: { path: { workbench: id } } })),
    touches: TOUCHES,
    done: (_, { name }) => t("removed", { name }),
    optimistic: (cache, { id }) => cache.dropItems<Bench>("/workbenches", (one) => one.id === id),
  });
  return {
    start: (bench: Bench) => start.mutate(bench),
    stop: (bench: Bench) =>
      confirm({
        title: t("stopTitle", { name: bench.name }),
        text: t("stopText"),
        action: t("stop"),
        onConfirm: () => stop.mutate(bench),
      }),
    remove: (bench: Bench) =>
      confirm({
        title: t("removeTitle", { name: bench.name }),
        text: t("removeText"),
        action: t("removeIt"),
        onConfirm: () => remove.mutate(bench),
      }),
  };
}
