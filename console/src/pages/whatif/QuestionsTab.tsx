import { Button, Group, Text } from "@mantine/core";
import { FlaskConical, Plus } from "lucide-react";
import { useMemo } from "react";

import { usePages } from "@/api/useAll";
import { useFilters } from "@/app/useFilters";
import { AskForm } from "@/pages/whatif/AskForm";
import { isOver, percentText, shownAs, type Simulation } from "@/pages/whatif/numbers";
import { Progress } from "@/pages/whatif/Progress";
import { useSimulationActions } from "@/pages/whatif/useSimulationActions";
import { texts } from "@/pages/whatif/texts";
import { DataTable, Faint, type Column } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { Moment } from "@/parts/Moment";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { RowMenu } from "@/parts/RowMenu";
import { StateBadge } from "@/parts/StateBadge";
import { common } from "@/texts/common";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

const FILTERS = { new: "" };
const PAGE = { limit: 50 };

export function QuestionsTab() {
  const t = useTexts(texts);
  const c = useTexts(common);
  const [filters, setFilters] = useFilters(FILTERS);
  const { items, error, hasMore, isLoadingMore, loadMore, retry } = usePages("/simulations", PAGE);
  const actionsFor = useSimulationActions();
  const columns = useColumns();
  const ask = (
    <Button leftSection={<Plus size={15} />} onClick={() => setFilters({ new: "yes" })}>
      {t("ask")}
    </Button>
  );
  if (error !== null && items === undefined) return <ProblemNote error={error} onRetry={retry} />;
  return (
    <>
      <Panel title={t("list")} tools={ask}>
        <DataTable
          label={t("list")}
          rows={items}
          columns={columns}
          rowKey={(one) => one.id}
          href={(one) => `/what-if/${one.id}`}
          empty={<EmptyState icon={FlaskConical} title={t("empty")} hint={t("emptyHint")} />}
          actions={(one) => <RowMenu label={t("menuOf", { name: one.name })} actions={actionsFor(one)} />}
          foot={
            hasMore && (
              <Group justify="center" p="sm">
                <Button variant="default" loading={isLoadingMore} onClick={loadMore}>
                  {c("loadMore")}
                </Button>
              </Group>
            )
          }
        />
      </Panel>
      {filters.new !== "" && <AskForm onClose={() => setFilters({ new: "" })} />}
    </>
  );
}

function useColumns(): readonly Column<Simulation>[] {
  const t = useTexts(texts);
  const c = useTexts(common);
  const format = useFormat();
  return useMemo(
    () => [
      {
        key: "name",
        title: t("name"),
        render: (one) => (
          <>
            {one.name}
            {one.name !== one.words.candidate && <Faint>{one.words.candidate}</Faint>}
          </>
        ),
      },
      // Without it the answer still says what has not been worked out, or went wrong.
      { key: "state", title: c("state"), wide: true, render: (one) => <StateBadge state={one.state} /> },
      {
        key: "window",
        title: t("window"),
        wide: true,
        render: (one) => (
          <span className="num">
            {format.dayTime(one.since)} – {format.dayTime(one.until)}
          </span>
        ),
      },
      { key: "answer", title: t("answer"), render: (one) => <Answer simulation={one} /> },
      {
        key: "asked",
        title: t("asked"),
        numeric: true,
        wide: true,
        render: (one) => (
          <>
            <Moment at={one.created_at} />
            <Faint>{one.created_by}</Faint>
          </>
        ),
      },
    ],
    [t, c, format],
  );
}

function Answer({ simulation }: { simulation: Simulation }) {
  const t = useTexts(texts);
  const format = useFormat();
  const { headline, error } = simulation;
  if (!isOver(simulation)) return <Progress simulation={simulation} />;
  if (headline === null)
    return (
      <Text size="sm" c="dimmed">
        {error || "–"}
      </Text>
    );
  const { wait_mean_seconds: wait, utilization: use } = headline;
  const percent =
    wait.base === null || wait.candidate === null || wait.base === 0
      ? null
      : (100 * (wait.candidate - wait.base)) / wait.base;
  return (
    <>
      <Text size="sm" className="num">
        {t("wait", { from: shownAs("seconds", wait.base, format), to: shownAs("seconds", wait.candidate, format) })}{" "}
        {percentText(percent)}
      </Text>
      <Faint>
        {t("use", { from: shownAs("fraction", use.base, format), to: shownAs("fraction", use.candidate, format) })}
      </Faint>
    </>
  );
}
