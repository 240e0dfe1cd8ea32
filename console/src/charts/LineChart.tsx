/** Lines over time, or over the steps of a program, with a legend that shows the latest, mean and highest value of each. Drawn by uPlot, loaded when needed. */
import { Box, Group, Skeleton, Text } from "@mantine/core";
import { ChartNoAxesCombined } from "lucide-react";
import { lazy, Suspense } from "react";

import { EmptyState } from "@/parts/EmptyState";
import { texts } from "@/charts/texts";
import { useTexts } from "@/texts/texts";

export interface Line {
  readonly label: string;
  readonly color: string;
  /** Seconds since 1970, or a step, and a value; gaps are nulls. In order of time. */
  readonly points: readonly (readonly [at: number, value: number | null])[];
}

/** Something that happened at a time, drawn as a line through the chart. */
export interface Mark {
  readonly at: number;
  readonly label: string;
  readonly color: string;
}

export interface LineChartProps {
  /** A description of the chart, for screen readers. */
  readonly label: string;
  readonly lines: readonly Line[] | undefined;
  readonly format: (value: number) => string;
  readonly height?: number;
  readonly min?: number;
  readonly max?: number;
  /** The time axis, in seconds; the points' own range without it. */
  readonly range?: readonly [from: number, to: number];
  readonly legend?: boolean;
  /** The meaning of the points' first numbers; charts of the same kind share their crosshair. */
  readonly axis?: "time" | "step";
  readonly marks?: readonly Mark[];
  /** A stretch of time was marked with the mouse, in seconds since 1970. Steps are zoomed by the chart itself. */
  readonly onZoom?: (from: number, to: number) => void;
  /** The values are bytes: the axis steps by powers of two. */
  readonly binary?: boolean;
}

const Plot = lazy(() => import("@/charts/Plot"));

export function LineChart(props: LineChartProps) {
  const t = useTexts(texts);
  const { lines, height = 200 } = props;
  if (lines === undefined) return <Skeleton h={height} />;
  if (lines.every((line) => line.points.length === 0))
    return <EmptyState icon={ChartNoAxesCombined} title={t("noReadings")} hint={t("noReadingsHint")} />;
  return (
    <figure style={{ margin: 0 }} aria-label={props.label}>
      <Suspense fallback={<Skeleton h={height} />}>
        <Plot {...props} lines={lines} height={height} />
      </Suspense>
      {props.legend !== false && <Legend lines={lines} format={props.format} />}
    </figure>
  );
}

function Legend({ lines, format }: { lines: readonly Line[]; format: (value: number) => string }) {
  const t = useTexts(texts);
  return (
    <Group gap="4px 16px" mt="xs" component="figcaption">
      {lines.map((line) => {
        const values = line.points.map(([, value]) => value).filter((value) => value !== null);
        const last = values.at(-1);
        return (
          <Group key={line.label} gap={6} wrap="nowrap">
            <Box w={12} h={3} bg={line.color} style={{ borderRadius: 2 }} aria-hidden />
            <Text size="xs">{line.label}</Text>
            {last !== undefined && (
              <Text size="xs" c="dimmed" className="num">
                {format(last)} · {t("mean")} {format(values.reduce((sum, value) => sum + value, 0) / values.length)} ·{" "}
                {t("max")} {format(Math.max(...values))}
              </Text>
            )}
          </Group>
        );
      })}
    </Group>
  );
}
