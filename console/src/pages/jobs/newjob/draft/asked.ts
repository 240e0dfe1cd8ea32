/** How much a draft asks for in all, as far as it is known yet. */
import { cpusOf, gpusOf, wholeOf } from "@/pages/jobs/newjob/draft/quantities";
import type { Facts } from "@/pages/jobs/newjob/draft/check";
import type { Draft } from "@/pages/jobs/newjob/draft/draft";
import { parseSize } from "@/texts/sizes";

export interface Amounts {
  readonly gpus: number;
  readonly cpus: number;
  readonly memory_bytes: number;
}

export function askedBy(draft: Draft, facts: Facts): Amounts {
  const nodes = draft.kind === "distributed" ? (wholeOf(draft.nodes, 1, 10_000) ?? 1) : 1;
  const one =
    draft.sizing === "package" ? facts.offers?.find((offer) => offer.name === draft.package) : customSize(draft, facts);
  return {
    gpus: (one?.gpus ?? 0) * nodes,
    cpus: (one?.cpus ?? 0) * nodes,
    memory_bytes: (one?.memory_bytes ?? 0) * nodes,
  };
}

/** The size in the form; empty fields have the preset's values, if there is a preset. */
function customSize(draft: Draft, { preset }: Facts): Amounts {
  const gpus = draft.isElastic && draft.kind !== "workbench" ? draft.min_gpus : draft.gpus;
  return {
    gpus: gpusOf(gpus) ?? preset?.gpus ?? 0,
    cpus: cpusOf(draft.cpus) ?? preset?.cpus ?? 0,
    memory_bytes: parseSize(draft.memory) ?? preset?.memory_bytes ?? 0,
  };
}
