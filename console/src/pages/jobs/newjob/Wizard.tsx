/** The steps of the form: errors are shown beside their fields, and the next step opens only without errors. */
import { Button, Group, Stack, Stepper, Text, Title } from "@mantine/core";
import { ArrowLeft, ArrowRight, CircleAlert, Send } from "lucide-react";
import { useEffect, useRef, type FormEvent } from "react";

import { ProblemNote } from "@/parts/ProblemNote";
import type { Problem } from "@/api/problem";
import { focusWrong } from "@/pages/jobs/newjob/focusWrong";
import type { JobForm } from "@/pages/jobs/newjob/useJobForm";
import { STEPS, stepOf } from "@/pages/jobs/newjob/steps";
import { texts } from "@/pages/jobs/newjob/texts";
import { useTexts } from "@/texts/texts";

interface WizardProps {
  readonly form: JobForm;
  readonly at: number;
  readonly goTo: (step: string) => void;
  readonly isAttempted: boolean;
  readonly onAttempt: (isAttempted: boolean) => void;
  readonly refused: Problem | null;
  readonly isBusy: boolean;
  readonly onSubmit: () => void;
}

export function Wizard({ form, at, goTo, isAttempted, onAttempt, refused, isBusy, onSubmit }: WizardProps) {
  const t = useTexts(texts);
  const box = useRef<HTMLFormElement>(null);
  const heading = useRef<HTMLHeadingElement>(null);
  const arrived = useRef(at);
  const step = STEPS[at] ?? STEPS[0];
  const last = STEPS.length - 1;

  useEffect(() => {
    // A step that is opened scrolls to its top; the page itself, when opened, stays at its own top.
    if (arrived.current !== at) heading.current?.focus();
    arrived.current = at;
  }, [at]);

  const wrongIn = (key: string) => Object.keys(form.findings).filter((field) => stepOf(field)?.key === key);
  const wrongHere = step === undefined ? [] : wrongIn(step.key);

  /** Without being asked for what is missing there. */
  function walkTo(index: number) {
    onAttempt(false);
    goTo(STEPS[index]?.key ?? "");
  }

  function goOn(event: FormEvent) {
    event.preventDefault();
    const blocked =
      at < last ? (wrongHere.length > 0 ? step : undefined) : STEPS.find((one) => wrongIn(one.key).length > 0);
    if (blocked !== undefined) {
      onAttempt(true);
      if (blocked !== step) goTo(blocked.key);
      focusWrong(box.current);
      return;
    }
    if (at < last) walkTo(at + 1);
    else onSubmit();
  }

  if (step === undefined) return null;
  const text =
    isAttempted && wrongHere.length > 0
      ? t("mend", { n: wrongHere.length, what: wrongHere.map((field) => form.findings[field]?.text ?? "").join("; ") })
      : "";
  return (
    <form ref={box} onSubmit={goOn} noValidate aria-label={t("steps")}>
      <Stepper
        active={at}
        onStepClick={walkTo}
        size="xs"
        iconSize={30}
        mb="lg"
        wrap={false}
        styles={{ steps: { overflowX: "auto" }, stepLabel: { whiteSpace: "nowrap" } }}
      >
        {STEPS.map(({ key, title, icon: Icon }, index) => {
          const isWrong = (index < at || isAttempted) && wrongIn(key).length > 0;
          return (
            <Stepper.Step
              key={key}
              label={t(title)}
              icon={<Icon size={15} />}
              completedIcon={isWrong ? <CircleAlert size={15} /> : undefined}
              color={isWrong ? "red" : undefined}
              aria-label={t(title)}
              aria-current={index === at ? "step" : undefined}
            />
          );
        })}
      </Stepper>
      <Group justify="space-between" mb="md" gap="xs">
        <Title order={2} ref={heading} tabIndex={-1} style={{ outline: "none" }}>
          {t(step.question)}
        </Title>
        <Text size="xs" c="dimmed">
          {t("step", { n: at + 1, of: STEPS.length })}
        </Text>
      </Group>
      <Stack gap="md">
        {refused !== null && <ProblemNote error={refused} />}
        <step.Content />
        <Text role="alert" size="sm" c="var(--mantine-color-error)" hidden={text === ""}>
          {text}
        </Text>
        <Group justify="space-between">
          <Button
            variant="default"
            size="sm"
            leftSection={<ArrowLeft size={16} />}
            disabled={at === 0}
            onClick={() => walkTo(at - 1)}
          >
            {t("back")}
          </Button>
          {at < last ? (
            <Button type="submit" size="sm" rightSection={<ArrowRight size={16} />}>
              {t("next")}
            </Button>
          ) : (
            <Button
              type="submit"
              size="sm"
              leftSection={<Send size={16} />}
              loading={isBusy}
              disabled={form.refusal !== undefined}
            >
              {t(form.draft.hold ? "create" : "submit")}
            </Button>
          )}
        </Group>
      </Stack>
    </form>
  );
}
