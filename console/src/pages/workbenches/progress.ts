/** How far a workbench is on its way from created to something one can use. */
import type { Schema } from "@/api/client";

export type Stage = "off" | "queued" | "starting" | "jupyter" | "ssh" | "ready" | "ending" | "failed";

export function stageOf(bench: Schema<"WorkbenchView">): Stage {
  switch (bench.state) {
    case "queued":
    case "starting":
      return bench.state;
    case "failed":
      return "failed";
    case "stopping":
      return "ending";
    case "running":
      if (bench.jupyter !== null && !bench.jupyter.ready) return "jupyter";
      return bench.ssh !== null && !bench.ssh.ready ? "ssh" : "ready";
    default:
      return "off";
  }
}

/** The progress of each stage in percent. */
export const FAR: Readonly<Partial<Record<Stage, number>>> = { queued: 15, starting: 45, jupyter: 75, ssh: 75 };

/** One that is on its way or on its way out changes without an event of its own. */
export function isMoving(bench: Schema<"WorkbenchView">): boolean {
  return !["off", "ready", "failed"].includes(stageOf(bench));
}

export function isOver(bench: Schema<"WorkbenchView">): boolean {
  return ["created", "stopped", "failed", "completed"].includes(bench.state);
}
