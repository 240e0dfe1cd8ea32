/** Charts of what programs report per step: one for each name, with a line for each job. */
import { Alert, SegmentedControl, SimpleGrid, Stack } from "@mantine/core";
import { ChartLine } from "lucide-react";
import { useMemo } from "react";

import { useFilters } from "@/app/useFilters";
import { LineChart } from "@/charts/LineChart";
import { boundsOf, linesOf, namesOf, shown, SMOOTHING, type OfJob, type Smoothing } from "@/pages/jobs/curves/curves";
import { texts } from "@/pages/jobs/curves/texts";
import { EmptyState } from "@/parts/EmptyState";
import { Panel } from "@/parts/Panel";
import { useTexts } from "@/texts/texts";

const LOOK = { smooth: "none" } as const;

export function CurveCharts({ jobs, isComplete }: { jobs: readonly OfJob[]; isComplete: boolean }) {
  const t = useTexts(texts);
  const [look, setLook] = useFilters(LOOK);
  const smoothing: Smoothing = isSmoothing(look.smooth) ? look.smooth : "none";
  const names = useMemo(() => namesOf(jobs), [jobs]);
  if (names.length === 0) return <EmptyState icon={ChartLine} title={t("none")} hint={t("noneHint")} />;
  return (
    <Stack gap="sm">
      {!isComplete && <Alert color="blue">{t("incomplete")}</Alert>}
      <SegmentedControl
        size="xs"
        aria-label={t("smoothing")}
        style={{ alignSelf: "flex-start" }}
        value={smoothing}
        onChange={(smooth) => setLook({ smooth })}
        data={Object.keys(SMOOTHING).map((value) => ({
          value,
          label: `${value === "none" ? `${t("smoothing")}: ` : ""}${t(`smooth_${value as Smoothing}`)}`,
        }))}
      />
      <SimpleGrid cols={{ base: 1, lg: 2, xl: 3 }} spacing="sm">
        {names.map((name) => (
          <CurveChart key={name} name={name} jobs={jobs} smoothing={smoothing} />
        ))}
      </SimpleGrid>
    </Stack>
  );
}

function CurveChart({ name, jobs, smoothing }: { name: string; jobs: readonly OfJob[]; smoothing: Smoothing }) {
  const t = useTexts(texts);
  const lines = useMemo(() => linesOf(jobs, name, smoothing), [jobs, name, smoothing]);
  const bounds = useMemo(() => boundsOf(lines), [lines]);
  const said = lines.map((line) => {
    const last = line.points.at(-1)?.[1];
    return `${line.label} ${last === null || last === undefined ? "–" : shown(last)}`;
  });
  return (
    <Panel title={name}>
      <LineChart
        label={t("label", { name, lines: said.join(", ") })}
        lines={lines}
        axis="step"
        format={shown}
        min={bounds?.[0]}
        max={bounds?.[1]}
        height={190}
      />
    </Panel>
  );
}

function isSmoothing(text: string): text is Smoothing {
  return text in SMOOTHING;
}
