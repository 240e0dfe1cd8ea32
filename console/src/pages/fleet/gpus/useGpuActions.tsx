/** Marking, resetting and testing GPUs, one or many: explained, confirmed, and reported with the refusals. */
import { ClipboardCheck, RotateCcw, TriangleAlert, type LucideIcon } from "lucide-react";
import { useState, type ReactNode } from "react";

import { api, sent } from "@/api/client";
import { runEach, type Outcome } from "@/api/each";
import { Problem } from "@/api/problem";
import { useAction } from "@/api/useAction";
import { MarkDialog } from "@/pages/fleet/gpus/MarkDialog";
import { fitting, refusalOf, VERBS, type Gpu, type Verb } from "@/pages/fleet/gpus/rules";
import { TestProgress } from "@/pages/fleet/gpus/TestProgress";
import { texts } from "@/pages/fleet/gpus/texts";
import { useConfirm } from "@/parts/confirm";
import type { RowAction } from "@/parts/RowMenu";
import { toastProblem } from "@/parts/toasts";
import { useTexts } from "@/texts/texts";

const ICONS: Readonly<Record<Verb, LucideIcon>> = { mark: TriangleAlert, reset: RotateCcw, test: ClipboardCheck };
export const TOUCHES = ["/gpus", "/nodes", "/overview", "/events", "/jobs"];
/** Tests at the same time: they use the GPU to the full, and the node's power. */
const TESTS_AT_ONCE = 2;

export interface GpuActions {
  readonly actionsFor: (gpus: readonly Gpu[]) => RowAction[];
  /** The dialog and the progress of a test; to be put on the page. */
  readonly parts: ReactNode;
}

export function useGpuActions(): GpuActions {
  const t = useTexts(texts);
  const confirm = useConfirm();
  const [marked, setMarked] = useState<readonly Gpu[]>([]);
  const [progress, setProgress] = useState<{ done: number; n: number }>();
  const tellRefusals = ({ refused }: Outcome) => {
    if (refused.length > 0)
      toastProblem(
        new Problem(409, t("refused", { n: refused.length }), refused.map((one) => one.problem.detail).join(" ")),
      );
  };
  const reset = useAction({
    run: (ids: readonly string[]) =>
      runEach(ids, (gpu) => sent(api.POST("/gpus/{gpu}/reset-health", { params: { path: { gpu } } }))),
    touches: TOUCHES,
    done: ({ done }) => (done.length > 0 ? t("resetDone", { n: done.length }) : undefined),
    onDone: tellRefusals,
  });
  const test = useAction({
    run: async (ids: readonly string[]) => {
      setProgress({ done: 0, n: ids.length });
      try {
        return await runEach(
          ids,
          (gpu) => sent(api.POST("/gpus/{gpu}/self-test", { params: { path: { gpu } } })),
          (done) => setProgress({ done, n: ids.length }),
          TESTS_AT_ONCE,
        );
      } finally {
        setProgress(undefined);
      }
    },
    touches: TOUCHES,
    done: ({ done }) => (done.length > 0 ? t("testDone", { n: done.length }) : undefined),
    onDone: tellRefusals,
  });
  function ask(verb: Verb, gpus: readonly Gpu[]) {
    const fit = fitting(verb, gpus);
    if (verb === "mark") {
      setMarked(fit);
      return;
    }
    const ids = fit.map((gpu) => gpu.id);
    const left = gpus
      .filter((gpu) => !fit.includes(gpu))
      .map((gpu) => `${gpu.id} (${t(refusalOf(verb, gpu) ?? "refused")})`);
    const text = [
      t(`${verb}Text`, { names: ids.length === 1 ? (ids[0] ?? "") : t("summaryShort", { n: ids.length }) }),
      ...(left.length > 0 ? [t("left", { names: left.slice(0, 5).join(", ") })] : []),
    ].join(" ");
    confirm({
      title: t(`${verb}Title`, { n: ids.length }),
      text,
      action: t(verb),
      onConfirm: () => (verb === "reset" ? reset : test).mutate(ids),
      danger: false,
    });
  }
  const actionsFor = (gpus: readonly Gpu[]): RowAction[] =>
    VERBS.map((verb) => {
      const reason = gpus.map((gpu) => refusalOf(verb, gpu)).find((one) => one !== undefined);
      const refusal = fitting(verb, gpus).length > 0 || reason === undefined ? undefined : t(reason);
      return { label: t(verb), icon: ICONS[verb], refusal, danger: verb === "mark", onClick: () => ask(verb, gpus) };
    });
  const parts = (
    <>
      {progress !== undefined && <TestProgress {...progress} />}
      {marked.length > 0 && <MarkDialog gpus={marked} onClose={() => setMarked([])} onRefused={tellRefusals} />}
    </>
  );
  return { actionsFor, parts };
}
