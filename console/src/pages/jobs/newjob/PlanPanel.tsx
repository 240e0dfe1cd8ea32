/** The dry run, always in sight: what would happen to the draft now, and why. */
import { Group, List, Loader, Stack, Text } from "@mantine/core";
import { CircleCheck, CircleX, Clock, Hourglass, type LucideIcon } from "lucide-react";

import type { Schema } from "@/api/client";
import { Panel } from "@/parts/Panel";
import { useForm } from "@/pages/jobs/newjob/form";
import { arraySizeOf } from "@/pages/jobs/newjob/draft/quantities";
import { texts } from "@/pages/jobs/newjob/texts";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

const LOOKS: Readonly<
  Record<Schema<"PlanView">["outcome"], readonly [LucideIcon, string, "wouldStart" | "wouldWait" | "wouldRefuse"]>
> = {
  start: [CircleCheck, "var(--corral-good)", "wouldStart"],
  wait: [Clock, "var(--corral-warn)", "wouldWait"],
  refuse: [CircleX, "var(--corral-bad)", "wouldRefuse"],
};

export function PlanPanel() {
  const t = useTexts(texts);
  const { planned, draft } = useForm();
  const jobs = draft.kind === "workbench" || draft.array.trim() === "" ? undefined : arraySizeOf(draft.array);
  return (
    <Panel title={t("plan")} tools={planned.isOld ? <Loader size={14} aria-label={t("planning")} /> : undefined}>
      <div role="status" aria-live="polite" aria-busy={planned.isOld} data-testid="plan">
        <PlanAnswer />
      </div>
      <Stack gap={2} mt="sm">
        {jobs !== undefined && <Small text={t("forOneOf", { n: jobs })} />}
        {draft.hold && <Small text={t("heldAnyway")} />}
        <Small text={t("nothingChanges")} />
      </Stack>
    </Panel>
  );
}

function PlanAnswer() {
  const t = useTexts(texts);
  const { planned, draft } = useForm();
  const isUnset =
    draft.sizing === "unset" ||
    (draft.sizing === "package" && draft.package === "") ||
    (draft.kind === "preset" && draft.preset === "");
  if (planned.problem !== undefined) return <Outcome outcome="refuse" lines={[planned.problem.detail]} />;
  if (planned.plan !== undefined) return <PlanLines plan={planned.plan} />;
  const waiting = isUnset ? t("planUnset") : planned.isOld ? t("planning") : t("planAfterMending");
  return (
    <Group gap="xs" wrap="nowrap" align="flex-start">
      <Hourglass size={18} aria-hidden />
      <Text size="sm">{waiting}</Text>
    </Group>
  );
}

/** Listed in full up to here. */
const MOST_JOBS = 5;

function few(jobs: readonly string[]): string {
  const more = jobs.length - MOST_JOBS;
  return more > 0 ? `${jobs.slice(0, MOST_JOBS).join(", ")} + ${more}` : jobs.join(", ");
}

/** The estimated start, the jobs ahead, and the jobs that would be preempted. */
function useExpectation(): (plan: Schema<"PlanView">) => string[] {
  const t = useTexts(texts);
  const format = useFormat();
  return ({ estimate, would_start: start }) => {
    const after = start?.after ?? [];
    const preempting = start?.preempting.map((one) => one.job ?? t("someJob")) ?? [];
    return [
      ...(!estimate
        ? []
        : [t("wouldEstimate", { p50: format.dayTime(estimate.p50), p90: format.dayTime(estimate.p90) })]),
      ...(after.length === 0 ? [] : [t("wouldComeAfter", { jobs: few(after) })]),
      ...(preempting.length === 0 ? [] : [t("wouldPreempt", { jobs: few(preempting) })]),
    ];
  };
}

function PlanLines({ plan }: { plan: Schema<"PlanView"> }) {
  const t = useTexts(texts);
  const format = useFormat();
  const expected = useExpectation()(plan);
  const nodes = plan.nodes.length > 0 ? [t("wouldStartOn", { nodes: plan.nodes.join(", ") })] : [];
  if (plan.outcome === "start") return <Outcome outcome="start" lines={[...nodes, ...expected]} />;
  if (plan.outcome === "refuse") return <Outcome outcome="refuse" lines={reasonsOf(plan)} />;
  const until =
    plan.start_at === null
      ? t("wouldWaitUnknown")
      : t("wouldWaitUntil", { time: format.time(plan.start_at), ago: format.ago(plan.start_at) });
  const behind = plan.ahead_count > 0 ? [t("behind", { n: plan.ahead_count })] : [];
  return <Outcome outcome="wait" lines={[...reasonsOf(plan), until, ...expected, ...nodes, ...behind]} />;
}

function reasonsOf(plan: Schema<"PlanView">): string[] {
  return [...new Set([plan.detail, ...plan.reasons.map((reason) => reason.detail)])].filter((text) => text !== "");
}

function Outcome({ outcome, lines }: { outcome: Schema<"PlanView">["outcome"]; lines: readonly string[] }) {
  const t = useTexts(texts);
  const [Icon, color, text] = LOOKS[outcome];
  return (
    <Group gap="xs" wrap="nowrap" align="flex-start" data-outcome={outcome}>
      <Icon size={18} color={color} aria-hidden style={{ flexShrink: 0, marginTop: 1 }} />
      <div>
        <Text fw={600}>{t(text)}</Text>
        <List size="sm" listStyleType="none" spacing={2} mt={2}>
          {lines.map((line) => (
            <List.Item key={line}>{line}</List.Item>
          ))}
        </List>
      </div>
    </Group>
  );
}

function Small({ text }: { text: string }) {
  return (
    <Text size="xs" c="dimmed">
      {text}
    </Text>
  );
}
