/** Everything the map knows about a GPU, in words: for the tooltip, and for those who hear it. */
import type { Gpu } from "@/pages/fleet/overview/map/gpus";
import type { texts } from "@/pages/fleet/overview/map/texts";
import type { states } from "@/texts/common";
import type { Format } from "@/texts/format";
import type { Say } from "@/texts/texts";

export interface Fact {
  readonly name: string;
  readonly value: string;
}

export interface Speech {
  readonly t: Say<typeof texts>;
  readonly stateLabel: Say<typeof states>;
  readonly format: Format;
}

export function factsOf(gpu: Gpu, speech: Speech): Fact[] {
  const { t, stateLabel, format } = speech;
  return [
    { name: t("model"), value: gpu.model },
    { name: t("node"), value: gpu.nodeState === "ready" ? gpu.node : `${gpu.node} (${stateLabel(gpu.nodeState)})` },
    { name: t("pool"), value: gpu.pool },
    { name: t("health"), value: stateLabel(gpu.health) + (gpu.stale ? `, ${t("stale")}` : "") },
    { name: t("held"), value: heldText(gpu, speech) },
    ...(gpu.job === null ? [] : [{ name: t("job"), value: gpu.job }]),
    { name: t("utilization"), value: format.percent(gpu.utilization) },
    { name: t("memory"), value: format.percent(gpu.memory) },
    { name: t("temperature"), value: format.celsius(gpu.temperature) },
    { name: t("power"), value: format.watts(gpu.power) },
  ];
}

export function heldText(gpu: Gpu, { t, format }: Speech): string {
  if (gpu.owner === null || gpu.allocated === 0) return t(gpu.taken ? "takenByOthers" : gpu.free ? "free" : "notFree");
  return gpu.allocated >= 1 ? gpu.owner : t("heldBy", { part: format.percent(gpu.allocated), user: gpu.owner });
}

/** One sentence, the most important first. */
export function spoken(gpu: Gpu, speech: Speech): string {
  const facts = factsOf(gpu, speech).map((fact) => `${fact.name} ${fact.value}`);
  return `${gpu.id}: ${facts.join(", ")}`;
}
