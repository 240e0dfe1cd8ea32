/**
 * The steps of the wizard: a file with a component, and one line here. A line says which fields belong to it, by the API's names.
 */
import { Box, ClipboardCheck, Container, Cpu, HardDrive, SquareTerminal, type LucideIcon } from "lucide-react";
import type { ComponentType } from "react";

import { ImageStep } from "@/pages/jobs/newjob/steps/ImageStep";
import { KindStep } from "@/pages/jobs/newjob/steps/KindStep";
import { ReviewStep } from "@/pages/jobs/newjob/steps/ReviewStep";
import { SizeStep } from "@/pages/jobs/newjob/steps/SizeStep";
import { StorageStep } from "@/pages/jobs/newjob/steps/StorageStep";
import { ToolsStep } from "@/pages/jobs/newjob/steps/ToolsStep";
import { plainFieldsOf, type Place } from "@/pages/jobs/spec/fields";
import { SWITCH_ROWS } from "@/pages/jobs/spec/switches";
import type { texts } from "@/pages/jobs/newjob/texts";

export interface Step {
  readonly key: string;
  readonly title: keyof typeof texts;
  readonly question: keyof typeof texts;
  readonly icon: LucideIcon;
  readonly fields: readonly string[];
  readonly Content: ComponentType;
}

function plainNames(isThere: (place: Place) => boolean): string[] {
  return plainFieldsOf(false)
    .filter((row) => isThere(row.place))
    .map((row) => row.name);
}

const PROGRAM = [
  "command",
  "preset",
  "parameters",
  "env",
  "secrets",
  "app",
  "port",
  "app_name",
  "queue",
  "after",
  "array",
  "pack",
  "retry_on",
  "hold",
  "jupyter",
  "ssh",
  "idle_stop",
  ...plainNames((place) => place !== "name"),
  ...SWITCH_ROWS.map((row) => row.name),
];

export const STEPS: readonly Step[] = [
  {
    key: "kind",
    title: "kindStep",
    question: "kindQuestion",
    icon: Box,
    fields: ["kind", "name", ...plainNames((place) => place === "name")],
    Content: KindStep,
  },
  {
    key: "image",
    title: "imageStep",
    question: "imageQuestion",
    icon: Container,
    fields: ["image"],
    Content: ImageStep,
  },
  {
    key: "storage",
    title: "storageStep",
    question: "storageQuestion",
    icon: HardDrive,
    fields: ["mounts"],
    Content: StorageStep,
  },
  {
    key: "size",
    title: "sizeStep",
    question: "sizeQuestion",
    icon: Cpu,
    fields: [
      "package",
      "nodes",
      "gpus",
      "min_gpus",
      "max_gpus",
      "restart_unsaved",
      "cpus",
      "memory",
      "model",
      "flavor",
      "labels",
    ],
    Content: SizeStep,
  },
  {
    key: "tools",
    title: "toolsStep",
    question: "toolsQuestion",
    icon: SquareTerminal,
    fields: PROGRAM,
    Content: ToolsStep,
  },
  {
    key: "review",
    title: "reviewStep",
    question: "reviewQuestion",
    icon: ClipboardCheck,
    fields: [],
    Content: ReviewStep,
  },
];

/** The step where a field of the API is given: `env.0` and `env` belong to the same. */
export function stepOf(field: string): Step | undefined {
  const top = field.split(/[.[]/)[0] ?? "";
  return STEPS.find((step) => step.fields.includes(top));
}
