/** The first steps of a new operator, or a new scientist. The server sees which of them are done. */
import { Anchor, Button, Group, Text, ThemeIcon, VisuallyHidden } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { Check, Circle } from "lucide-react";
import { useState } from "react";

import { $api, api, sent, type Schema } from "@/api/client";
import { useAction } from "@/api/useAction";
import classes from "@/pages/fleet/overview/Overview.module.css";
import { hints, steps, texts } from "@/pages/fleet/overview/firstSteps.texts";
import { CopyText } from "@/parts/CopyText";
import { Panel } from "@/parts/Panel";
import { useTexts } from "@/texts/texts";

type Steps = Schema<"FirstStepsView">;
type Step = Schema<"FirstStepView">;

interface Way {
  readonly to: string;
  readonly tab?: string;
  readonly command?: string;
}

const WAYS: Readonly<Record<Step["name"], Way>> = {
  password: { to: "/settings", command: "corral passwd" },
  gpus: { to: "/nodes", command: "corral doctor" },
  job: { to: "/jobs/new", command: "corral submit --gpus 1 --wait -- nvidia-smi" },
  people: { to: "/users", command: "corral user create NAME" },
  channel: { to: "/settings", tab: "notifications", command: "corral channel create NAME" },
  backup: { to: "/settings", tab: "configuration" },
  submit: { to: "/jobs/new", command: "corral submit --gpus 1 --wait -- nvidia-smi" },
  token: { to: "/settings", tab: "tokens", command: `corral login --server ${window.location.origin}` },
};

export default function FirstSteps() {
  const found = $api.useQuery("get", "/me/first-steps", {}, { enabled: (query) => !isOver(query.state.data) });
  const [isBegun, setIsBegun] = useState(false);
  const steps = found.data;
  if (steps === undefined || steps.dismissed) return null;
  // Those who had done everything before have no use for the list.
  if (!isBegun && !isOver(steps)) setIsBegun(true);
  return isBegun && <List steps={steps.steps} onShownAgain={() => void found.refetch()} />;
}

function isOver(found: Steps | undefined): boolean {
  return found !== undefined && (found.dismissed || found.steps.every((step) => step.done));
}

function List({ steps: list, onShownAgain }: { steps: readonly Step[]; onShownAgain: () => void }) {
  const t = useTexts(texts);
  const put = (dismissed: boolean) => sent(api.PUT("/me/first-steps", { body: { dismissed } }));
  const dismiss = useAction<boolean, unknown>({
    run: put,
    touches: ["/me/first-steps"],
    optimistic: (cache) => cache.change<Steps>("/me/first-steps", (before) => ({ ...before, dismissed: true })),
    done: () => t("dismissed"),
    undo: () => () => put(false).then(onShownAgain),
  });
  const done = list.filter((step) => step.done).length;
  const next = list.find((step) => !step.done);
  return (
    <Panel
      title={t("title")}
      mb={12}
      tools={
        <>
          <Text size="xs" c="dimmed" role="status">
            {next === undefined ? t("allDone") : t("done", { done, all: list.length })}
          </Text>
          <Button size="compact-xs" variant="default" onClick={() => dismiss.mutate(true)}>
            {t("dismiss")}
          </Button>
        </>
      }
    >
      <ul className={classes.steps}>
        {list.map((step) => (
          <StepRow key={step.name} step={step} isNext={step === next} />
        ))}
      </ul>
    </Panel>
  );
}

/** Only the next step is explained. */
function StepRow({ step, isNext }: { step: Step; isNext: boolean }) {
  const t = useTexts(texts);
  const title = useTexts(steps);
  const hint = useTexts(hints);
  const { to, tab, command } = WAYS[step.name];
  const Icon = step.done ? Check : Circle;
  return (
    <li>
      <Group gap="xs" wrap="nowrap" align="flex-start">
        <ThemeIcon size={18} radius="xl" variant="light" color={step.done ? "teal" : "gray"} mt={2}>
          <Icon size={12} aria-hidden />
        </ThemeIcon>
        <div style={{ minWidth: 0 }}>
          <Anchor
            size="sm"
            c={step.done ? "dimmed" : undefined}
            renderRoot={(props) => <Link to={to} search={tab === undefined ? {} : { tab }} {...props} />}
          >
            {title(step.name)}
            <VisuallyHidden>{`(${t(step.done ? "isDone" : "isOpen")})`}</VisuallyHidden>
          </Anchor>
          {isNext && (
            <>
              <Text size="xs" c="dimmed">
                {hint(step.name)}
              </Text>
              {command !== undefined && <CopyText text={command} />}
            </>
          )}
        </div>
      </Group>
    </li>
  );
}
