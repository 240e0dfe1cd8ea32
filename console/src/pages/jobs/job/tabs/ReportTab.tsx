/** How a training of a preset went: its curves, and the confusion matrix or the average precision of each class. */
import { Badge, Box, Group, SimpleGrid, Skeleton, Stack, Table, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { ChartLine } from "lucide-react";
import { useMemo } from "react";

import { PREFIX } from "@/api/client";
import { Chart } from "@/charts/Chart";
import type { Job } from "@/pages/jobs/actions/possible";
import { texts } from "@/pages/jobs/job/texts";
import { trainingReport, type TrainingReport } from "@/pages/jobs/job/trainingReport";
import { EmptyState } from "@/parts/EmptyState";
import { FactList } from "@/parts/FactList";
import { Panel } from "@/parts/Panel";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

const AGAIN_MS = 15_000;
/** Readable on the grounds of both themes. */
const FAINT = "#7f8aa0";
const LINE = "#20b8a6";

export function ReportTab({ job }: { job: Job }) {
  const t = useTexts(texts);
  const { data: report, isPending } = useQuery({
    // Outputs change without an event; the state is part of the key, so that the end is looked at.
    queryKey: ["get", "/jobs/{job}/files/content", job.id, "report.json", job.state],
    queryFn: () => read(job.id),
    refetchInterval: job.state === "running" ? AGAIN_MS : false,
  });
  if (isPending) return <Skeleton h={260} />;
  if (report === null || report === undefined)
    return <EmptyState icon={ChartLine} title={t("noReport")} hint={t("noReportHint")} />;
  return (
    <Stack>
      <Panel title={report.title}>
        <FactList facts={report.facts} />
        <Group gap={6} mt="sm" aria-label={t("classes")}>
          {report.classes.map((name) => (
            <Badge key={name} variant="light" color="gray" tt="none">
              {name}
            </Badge>
          ))}
        </Group>
      </Panel>
      <SimpleGrid cols={{ base: 1, md: 2 }}>
        {report.curves.map((curve) => (
          <Panel key={curve.name} title={curve.name.replaceAll("_", " ")}>
            <Curve name={curve.name} epochs={report.epochs} values={curve.values} />
          </Panel>
        ))}
      </SimpleGrid>
      {report.confusion !== undefined && <Confusion classes={report.classes} counts={report.confusion} />}
      {report.averagePrecision !== undefined && <Precision values={report.averagePrecision} />}
    </Stack>
  );
}

/** Null while there is none. */
async function read(job: string): Promise<TrainingReport | null> {
  const answer = await fetch(`${PREFIX}/jobs/${encodeURIComponent(job)}/files/content?path=report.json`);
  return answer.ok ? (trainingReport(await answer.text()) ?? null) : null;
}

function Curve({ name, epochs, values }: { name: string; epochs: readonly number[]; values: readonly number[] }) {
  const t = useTexts(texts);
  const format = useFormat();
  const option = useMemo(
    () => ({
      grid: { left: 8, right: 16, top: 12, bottom: 8, containLabel: true },
      tooltip: { trigger: "axis" as const },
      xAxis: { type: "category" as const, data: [...epochs], axisLabel: { color: FAINT } },
      yAxis: {
        type: "value" as const,
        scale: true,
        axisLabel: { color: FAINT },
        splitLine: { lineStyle: { color: FAINT, opacity: 0.25 } },
      },
      series: [{ name, type: "line" as const, data: [...values], itemStyle: { color: LINE }, showSymbol: false }],
    }),
    [name, epochs, values],
  );
  const [first, last] = [values[0] ?? 0, values.at(-1) ?? 0];
  const label = t("curveLabel", { name, first: format.number(first), last: format.number(last), n: values.length });
  return <Chart label={label} option={option} height={180} />;
}

function Confusion({ classes, counts }: { classes: readonly string[]; counts: readonly (readonly number[])[] }) {
  const t = useTexts(texts);
  return (
    <Panel title={t("confusion")}>
      <Text size="xs" c="dimmed" mb="xs">
        {t("confusionHint")}
      </Text>
      <Box style={{ overflowX: "auto" }}>
        <Table aria-label={t("confusion")} withTableBorder withColumnBorders w="auto">
          <Table.Thead>
            <Table.Tr>
              <Table.Th />
              {classes.map((name) => (
                <Table.Th key={name}>{name}</Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {counts.map((row, right) => (
              <Table.Tr key={classes[right]}>
                <Table.Th>{classes[right]}</Table.Th>
                {row.map((count, found) => (
                  <Table.Td key={classes[found]} ta="right" fw={right === found ? 700 : 400} className="num">
                    {count}
                  </Table.Td>
                ))}
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Box>
    </Panel>
  );
}

function Precision({ values }: { values: readonly (readonly [string, number])[] }) {
  const t = useTexts(texts);
  const format = useFormat();
  return (
    <Panel title={t("averagePrecision")}>
      <FactList facts={values.map(([name, value]) => [name, format.percent(value, 1)] as const)} />
    </Panel>
  );
}
