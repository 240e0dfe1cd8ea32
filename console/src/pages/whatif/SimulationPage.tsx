/** One question and its answer: two runs of the same window side by side. */
import { Alert, Button, Group, Stack } from "@mantine/core";
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { CircleX, Compass } from "lucide-react";

import { $api } from "@/api/client";
import { problemOf } from "@/api/problem";
import { PageLoading } from "@/app/shell/fallbacks";
import { About, Coverage, UsageHistory, Headline, Numbers, Shares, WaitingCdf } from "@/pages/whatif/Comparison";
import { isOver, type Simulation } from "@/pages/whatif/numbers";
import { Policies } from "@/pages/whatif/Policies";
import { Progress } from "@/pages/whatif/Progress";
import { useSimulationActions } from "@/pages/whatif/useSimulationActions";
import { texts } from "@/pages/whatif/texts";
import { ActionButtons } from "@/parts/BatchBar";
import { BackLink } from "@/parts/BackLink";
import { EmptyState } from "@/parts/EmptyState";
import { PageHeader } from "@/parts/PageHeader";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { StateBadge } from "@/parts/StateBadge";
import { navigation } from "@/texts/navigation";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

export default function SimulationPage() {
  const { simulation: id = "" }: { simulation?: string } = useParams({ strict: false });
  const t = useTexts(texts);
  const n = useTexts(navigation);
  const { data, error, refetch } = $api.useQuery("get", "/simulations/{id}", { params: { path: { id } } });
  if (error !== null && problemOf(error).status === 404) {
    return (
      <>
        <PageHeader title={n("whatIf")} />
        <EmptyState icon={Compass} title={t("notFound")} hint={t("notFoundHint")}>
          <Button renderRoot={(props) => <Link to="/what-if" {...props} />}>{t("back")}</Button>
        </EmptyState>
      </>
    );
  }
  if (data === undefined)
    return error === null ? <PageLoading /> : <ProblemNote error={error} onRetry={() => void refetch()} />;
  return <SimulationView simulation={data} />;
}

function SimulationView({ simulation }: { simulation: Simulation }) {
  const t = useTexts(texts);
  const format = useFormat();
  const navigate = useNavigate();
  const actionsFor = useSimulationActions(() => void navigate({ to: "/what-if" }));
  const { result } = simulation;
  const actions = actionsFor(simulation).filter((action) => action.refusal === undefined);
  return (
    <>
      <BackLink to="/what-if">{t("back")}</BackLink>
      <PageHeader
        title={simulation.name}
        detail={
          <Group gap="xs">
            <StateBadge state={simulation.state} />
            <span>
              {[
                simulation.name === simulation.words.candidate ? "" : simulation.words.candidate,
                `${format.dayTime(simulation.since)} – ${format.dayTime(simulation.until)}`,
              ]
                .filter((one) => one !== "")
                .join(" · ")}
            </span>
          </Group>
        }
      >
        <ActionButtons actions={actions} />
      </PageHeader>
      <Stack gap="sm">
        {!isOver(simulation) && (
          <Panel title={t("progress")}>
            <Progress simulation={simulation} />
          </Panel>
        )}
        <Coverage simulation={simulation} />
        {simulation.error !== "" && (
          <Alert color="red" icon={<CircleX size={18} />}>
            {simulation.error}
          </Alert>
        )}
        {result !== null && (
          <>
            <Policies result={result} />
            <Headline result={result} />
            <UsageHistory simulation={simulation} result={result} />
            <WaitingCdf result={result} />
            <Shares result={result} />
            <Numbers result={result} />
            <About simulation={simulation} result={result} />
          </>
        )}
      </Stack>
    </>
  );
}
