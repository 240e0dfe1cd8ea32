/** A draft in words, by the step where each thing was said. What was left open is left out. */
import { commandOf } from "@/pages/jobs/newjob/draft/commandline";
import type { Draft } from "@/pages/jobs/newjob/draft/draft";
import { useForm } from "@/pages/jobs/newjob/form";
import { mountText } from "@/pages/jobs/newjob/draft/mounts";
import { useContents } from "@/pages/jobs/newjob/steps/Packages";
import { texts } from "@/pages/jobs/newjob/texts";
import { LABELS, plainFieldsOf, type Place } from "@/pages/jobs/spec/fields";
import { SWITCH_LABELS, SWITCH_ROWS } from "@/pages/jobs/spec/switches";
import { common, kinds } from "@/texts/common";
import { useTexts, type Say } from "@/texts/texts";

type Line = readonly [label: string, value: string];

export interface SummaryPart {
  readonly step: string;
  readonly title: string;
  readonly lines: readonly Line[];
}

export function useSummary(): readonly SummaryPart[] {
  const t = useTexts(texts);
  const c = useTexts(common);
  const k = useTexts(kinds);
  const label = useTexts(LABELS);
  const switchLabel = useTexts(SWITCH_LABELS);
  const contents = useContents();
  const { draft, facts } = useForm();
  const offer = draft.sizing === "package" ? facts.offers?.find((one) => one.name === draft.package) : undefined;
  const isElastic = draft.isElastic && draft.kind !== "workbench";
  const preset = draft.kind === "preset" ? facts.preset : undefined;
  const size: Line[] =
    draft.sizing === "package"
      ? [[t("packages"), offer === undefined ? draft.package : `${offer.name}: ${contents(offer)}`]]
      : [
          [
            c("gpus"),
            isElastic
              ? `${draft.min_gpus || "1"} … ${draft.max_gpus || ""}`
              : draft.gpus || (preset === undefined ? "" : t("asPreset", { value: preset.gpus })),
          ],
          [c("cpus"), draft.cpus],
          [c("memory"), draft.memory],
          [t("flavorLabel"), draft.flavor],
          [t("modelLabel"), draft.flavor === "" ? draft.model.join(", ") : ""],
        ];
  const nodes: Line[] = draft.kind === "distributed" ? [[t("nodesLabel"), draft.nodes]] : [];
  const switches = SWITCH_ROWS.filter((row) => draft.kind !== "workbench" && draft[row.name] !== row.usual).map(
    (row): Line => [switchLabel(row.name), c(draft[row.name] ? "yes" : "no")],
  );
  return [
    {
      step: "kind",
      title: t("kindStep"),
      lines: said([
        [t("kindStep"), k(draft.kind)],
        [t("name"), draft.name || t("givenName")],
        ...plainLines(draft, label, (place) => place === "name"),
      ]),
    },
    {
      step: "image",
      title: t("imageStep"),
      lines: said([[t("imageLabel"), draft.imageFrom === "node" ? t("imageNode") : draft.image]]),
    },
    {
      step: "storage",
      title: t("storageStep"),
      lines:
        draft.mounts.length === 0
          ? [[t("storageStep"), t("mountsNone")]]
          : draft.mounts.map((mount): Line => [mount.path, mountText(mount)]),
    },
    { step: "size", title: t("sizeStep"), lines: said([...nodes, ...size]) },
    { step: "tools", title: t("toolsStep"), lines: said([...programLines(draft, t, label, c("yes")), ...switches]) },
  ];
}

function programLines(draft: Draft, t: Say<typeof texts>, label: Say<typeof LABELS>, yes: string): Line[] {
  const parameters = Object.entries(draft.parameters)
    .filter(([, value]) => value !== "")
    .map(([name, value]): Line => [name, value]);
  const runs: Line[] =
    draft.kind === "preset"
      ? [[t("preset"), draft.preset], ...parameters]
      : draft.kind === "workbench"
        ? [
            [t("jupyter"), draft.jupyter ? yes : ""],
            [t("ssh"), draft.ssh ? yes : ""],
            [t("idleStop"), draft.idle_stop],
          ]
        : [
            [
              t("command"),
              commandOf(draft.command).isShell ? `/bin/sh -c\n${draft.command.trim()}` : draft.command.trim(),
            ],
          ];
  const isJob = draft.kind !== "workbench";
  return [
    ...runs,
    [
      t("labels"),
      Object.entries(draft.labels)
        .map(([name, value]) => `${name}=${value}`)
        .join(", "),
    ],
    [
      t("variables"),
      draft.env
        .filter((one) => one.name !== "")
        .map((one) => one.name)
        .join(", "),
    ],
    [t("secrets"), draft.secrets],
    [t("app"), isJob ? draft.app : ""],
    [t("appPort"), isJob ? draft.port : ""],
    [t("appName"), isJob ? draft.app_name : ""],
    [t("queue"), draft.queue || t("queueAny")],
    ...plainLines(draft, label, (place) => place !== "name"),
    [t("after"), isJob ? draft.after.join(", ") : ""],
    [t("array"), isJob ? draft.array : ""],
    [t("pack"), isJob && draft.pack && draft.array !== "" ? yes : ""],
    [t("retryOn"), isJob ? draft.retry_on : ""],
    [t("hold"), draft.hold ? yes : ""],
  ];
}

function plainLines(draft: Draft, label: Say<typeof LABELS>, isThere: (place: Place) => boolean): Line[] {
  return plainFieldsOf(draft.kind === "workbench")
    .filter((row) => isThere(row.place))
    .map((row): Line => [label(row.name), draft[row.name].trim()]);
}

function said(lines: readonly Line[]): Line[] {
  return lines.filter(([, value]) => value !== "");
}
