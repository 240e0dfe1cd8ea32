/** Cordon, uncordon, drain and remove, for one node or many: explained, confirmed, shown at once, and reported in a toast. */
import { Ban, CircleCheck, LogOut, Trash2, type LucideIcon } from "lucide-react";
import { useState, type ReactNode } from "react";

import { api, sent } from "@/api/client";
import { runEach } from "@/api/each";
import { Problem } from "@/api/problem";
import { useAction, type Cache } from "@/api/useAction";
import { DrainDialog } from "@/pages/fleet/nodes/DrainDialog";
import { fitting, refusalOf, VERBS, type Node, type Verb } from "@/pages/fleet/nodes/rules";
import { texts } from "@/pages/fleet/nodes/texts";
import { useConfirm } from "@/parts/confirm";
import type { RowAction } from "@/parts/RowMenu";
import { toastProblem } from "@/parts/toasts";
import { useTexts } from "@/texts/texts";

const ICONS: Readonly<Record<Verb, LucideIcon>> = { cordon: Ban, uncordon: CircleCheck, drain: LogOut, remove: Trash2 };
const WITHHELD: Readonly<Record<Exclude<Verb, "remove">, Node["state"]>> = {
  cordon: "cordoned",
  uncordon: "ready",
  drain: "draining",
};

interface Order {
  readonly verb: Verb;
  readonly names: readonly string[];
  /** For a drain: the time by which the nodes must be empty. */
  readonly emptyBy?: string | null;
}

export interface NodeActions {
  /** The four actions for these nodes, each with the reason if it cannot be done. */
  readonly actionsFor: (nodes: readonly Node[]) => RowAction[];
  /** The dialog of a drain; to be put on the page. */
  readonly parts: ReactNode;
}

export function useNodeActions(): NodeActions {
  const t = useTexts(texts);
  const [drained, setDrained] = useState<{ readonly names: readonly string[]; readonly note: string }>();
  const confirm = useConfirm();
  const action = useAction({
    run: ({ verb, names, emptyBy = null }: Order) => runEach(names, (node) => order(verb, node, emptyBy)),
    touches: ["/nodes", "/gpus", "/overview", "/events"],
    optimistic: (cache, given) => showAtOnce(cache, given),
    done: ({ done }, { verb }) => (done.length === 0 ? undefined : t(`${verb}Done`, { n: done.length })),
    undo: ({ done }, { verb }) =>
      verb === "cordon" && done.length > 0 ? () => runEach(done, (node) => order("uncordon", node, null)) : undefined,
    onDone: ({ refused }) => {
      if (refused.length > 0)
        toastProblem(
          new Problem(409, t("refused", { n: refused.length }), refused.map((one) => one.problem.detail).join(" ")),
        );
    },
  });
  function ask(verb: Verb, nodes: readonly Node[]) {
    const fit = fitting(verb, nodes);
    const names = fit.map((node) => node.id);
    const begin = () => action.mutate({ verb, names });
    if (verb === "uncordon") {
      begin();
      return;
    }
    const left = nodes.filter((node) => !fit.includes(node));
    const rest =
      left.length === 0
        ? ""
        : t("left", { names: left.map((node) => `${node.id} (${t(refusalOf(verb, node) ?? "refused")})`).join(", ") });
    // What a drain does is looked at before.
    if (verb === "drain") {
      setDrained({ names, note: rest });
      return;
    }
    const text = t(`${verb}Text`, { names: listed(names), jobs: fit.reduce((sum, node) => sum + node.jobs.length, 0) });
    confirm({
      title: t(`${verb}Title`, { n: names.length }),
      text: [text, rest].filter((one) => one !== "").join(" "),
      action: t(verb),
      onConfirm: begin,
      danger: verb === "remove",
    });
  }
  const actionsFor = (nodes: readonly Node[]): RowAction[] =>
    VERBS.map((verb) => {
      const reason = nodes.map((node) => refusalOf(verb, node)).find((one) => one !== undefined);
      const refusal = fitting(verb, nodes).length > 0 || reason === undefined ? undefined : t(reason);
      const label = verb === "drain" ? t("drainMore") : t(verb);
      return { label, icon: ICONS[verb], refusal, danger: verb === "remove", onClick: () => ask(verb, nodes) };
    });
  const parts = drained !== undefined && (
    <DrainDialog
      nodes={drained.names}
      note={drained.note}
      onDrain={(emptyBy) => action.mutate({ verb: "drain", names: drained.names, emptyBy })}
      onClose={() => setDrained(undefined)}
    />
  );
  return { actionsFor, parts };
}

function order(verb: Verb, node: string, emptyBy: string | null): Promise<unknown> {
  const params = { path: { node } };
  if (verb === "cordon") return sent(api.POST("/nodes/{node}/cordon", { params }));
  if (verb === "uncordon") return sent(api.POST("/nodes/{node}/uncordon", { params }));
  if (verb === "drain") return sent(api.POST("/nodes/{node}/drain", { params, body: { empty_by: emptyBy } }));
  return sent(api.DELETE("/nodes/{node}", { params }));
}

function showAtOnce(cache: Cache, { verb, names }: Order): void {
  // Whether a removal is allowed only the server knows: it is not shown before.
  if (verb === "remove") return;
  const withheld = WITHHELD[verb];
  const update = (node: Node): Node =>
    names.includes(node.id) ? { ...node, withheld, state: node.state === "down" ? "down" : withheld } : node;
  cache.changeItems<Node>("/nodes", () => true, update);
  cache.change<Node>("/nodes/{node}", update);
}

/** A few names, and how many more. */
function listed(names: readonly string[]): string {
  return names.length <= 5 ? names.join(", ") : `${names.slice(0, 4).join(", ")} + ${names.length - 4}`;
}
