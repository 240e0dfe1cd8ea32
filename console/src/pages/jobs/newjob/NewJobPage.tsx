import { Button, Grid, Skeleton, Stack } from "@mantine/core";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { RotateCcw, ShieldX } from "lucide-react";
import { useCallback, useState } from "react";

import type { Problem } from "@/api/problem";
import { useMe } from "@/app/session";
import { dropDraft } from "@/pages/jobs/newjob/draft/draft";
import { FormContext } from "@/pages/jobs/newjob/form";
import { PlanPanel } from "@/pages/jobs/newjob/PlanPanel";
import { QuotaPanel } from "@/pages/jobs/newjob/QuotaPanel";
import { STEPS, stepOf } from "@/pages/jobs/newjob/steps";
import { useAllowedKinds } from "@/pages/jobs/newjob/steps/KindStep";
import { useDraft } from "@/pages/jobs/newjob/draft/useDraft";
import { useJobForm } from "@/pages/jobs/newjob/useJobForm";
import { useSubmit } from "@/pages/jobs/newjob/useSubmit";
import { Wizard } from "@/pages/jobs/newjob/Wizard";
import { texts } from "@/pages/jobs/newjob/texts";
import { EmptyState } from "@/parts/EmptyState";
import { PageHeader } from "@/parts/PageHeader";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { toastDone } from "@/parts/toasts";
import { navigation } from "@/texts/navigation";
import { useTexts } from "@/texts/texts";

export default function NewJobPage() {
  const n = useTexts(navigation);
  const t = useTexts(texts);
  const me = useMe();
  const allowed = useAllowedKinds();
  if (allowed.length > 0) return <NewJob />;
  return (
    <>
      <PageHeader title={n("newJob")} />
      <EmptyState icon={ShieldX} title={t("notAllowedTitle")} hint={t("notAllowed", { group: me.permission_group })} />
    </>
  );
}

function NewJob() {
  const t = useTexts(texts);
  const n = useTexts(navigation);
  const { draft, set, startOver, clone } = useDraft();
  const [at, goTo] = useStep();
  const [isAttempted, setAttempted] = useState(false);
  const [refused, setRefused] = useState<Problem | null>(null);
  const form = useJobForm({ draft, set, isAttempted, refused, goTo });
  const submit = useSubmit({
    onDone: dropDraft,
    onProblem: (problem) => {
      setRefused(problem);
      setAttempted(true);
      const step = stepOf(problem.fields[0]?.field ?? "");
      if (step !== undefined) goTo(step.key);
    },
  });
  function reset() {
    startOver();
    setAttempted(false);
    setRefused(null);
    goTo(STEPS[0]?.key ?? "");
    toastDone(t("startedOver"));
  }
  return (
    <FormContext value={form}>
      <PageHeader
        title={n("newJob")}
        detail={clone.name === undefined ? undefined : t("cloneOf", { name: clone.name })}
      >
        <Button variant="default" leftSection={<RotateCcw size={14} />} onClick={reset}>
          {t("startOver")}
        </Button>
      </PageHeader>
      <Grid gap="md" align="flex-start">
        <Grid.Col span={{ base: 12, md: 8 }}>
          {clone.error !== null && clone.error !== undefined && (
            <ProblemNote error={clone.error} onRetry={clone.retry} />
          )}
          <Panel>
            {clone.isLoading ? (
              <Skeleton h={360} aria-label={t("cloneLoading")} />
            ) : (
              <Wizard
                form={form}
                at={at}
                goTo={goTo}
                isAttempted={isAttempted}
                onAttempt={setAttempted}
                refused={refused}
                isBusy={submit.isPending}
                onSubmit={() => submit.mutate(draft)}
              />
            )}
          </Panel>
        </Grid.Col>
        <Grid.Col span={{ base: 12, md: 4 }} style={{ position: "sticky", top: 72 }}>
          <Stack gap="md">
            <PlanPanel />
            <QuotaPanel />
          </Stack>
        </Grid.Col>
      </Grid>
    </FormContext>
  );
}

/** The step is in the address, so that the browser's back goes one step back. */
function useStep(): [number, (step: string) => void] {
  const search: Record<string, unknown> = useSearch({ strict: false });
  const navigate = useNavigate();
  const at = STEPS.findIndex((step) => step.key === search.step);
  const goTo = useCallback(
    (step: string) =>
      void navigate({
        to: ".",
        search: (before: Record<string, unknown>) => ({ ...before, step: step === STEPS[0]?.key ? undefined : step }),
        resetScroll: false,
      }),
    [navigate],
  );
  return [Math.max(0, at), goTo];
}
