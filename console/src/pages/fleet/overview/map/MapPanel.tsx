/** The map with its choices, all of them in the address: `?color=temperature&model=A10&find=dgx-07&view=table`. */
import { Button, Group, SegmentedControl, Skeleton, Stack, Text, TextInput } from "@mantine/core";
import { CircuitBoard, Search, SearchX } from "lucide-react";
import { lazy, memo, Suspense, useMemo } from "react";

import { useFilters } from "@/app/useFilters";
import { COLORINGS, isColoring } from "@/pages/fleet/overview/map/colors";
import classes from "@/pages/fleet/overview/map/GpuMap.module.css";
import { GpuMap } from "@/pages/fleet/overview/map/GpuMap";
import { chosen, gpusOf, type Gpu, type MapData } from "@/pages/fleet/overview/map/gpus";
import { legendOf } from "@/pages/fleet/overview/map/looks";
import { MapLegend } from "@/pages/fleet/overview/map/MapLegend";
import { texts } from "@/pages/fleet/overview/map/texts";
import { EmptyState } from "@/parts/EmptyState";
import { Panel } from "@/parts/Panel";
import { useIsDark } from "@/app/useIsDark";
import { useTexts } from "@/texts/texts";

const FilterSelect = lazy(() => import("@/parts/FilterSelect"));
const MapTable = lazy(() => import("@/pages/fleet/overview/map/MapTable"));

const USUAL = { color: "utilization", model: "", pool: "", find: "", view: "map" };

export const MapPanel = memo(function MapPanel({ data }: { data: MapData | undefined }) {
  const t = useTexts(texts);
  const [filters, setFilters] = useFilters(USUAL);
  const coloring = isColoring(filters.color) ? filters.color : "utilization";
  return (
    <Panel
      title={t("title")}
      tools={
        <>
          <SegmentedControl
            size="xs"
            className={classes.wide}
            aria-label={t("colorBy")}
            value={coloring}
            onChange={(color) => setFilters({ color })}
            data={COLORINGS.map((value) => ({ value, label: t(value) }))}
          />
          <SegmentedControl
            size="xs"
            aria-label={t("view")}
            value={filters.view === "table" ? "table" : "map"}
            onChange={(view) => setFilters({ view })}
            data={[
              { value: "map", label: t("asMap") },
              { value: "table", label: t("asTable") },
            ]}
          />
        </>
      }
    >
      {data === undefined ? (
        <Skeleton h={260} />
      ) : (
        <Chosen data={data} coloring={coloring} filters={filters} setFilters={setFilters} />
      )}
    </Panel>
  );
});

interface ChosenProps {
  readonly data: MapData;
  readonly coloring: (typeof COLORINGS)[number];
  readonly filters: Readonly<Record<keyof typeof USUAL, string>>;
  readonly setFilters: (change: Partial<Record<keyof typeof USUAL, string>>) => void;
}

function Chosen({ data, coloring, filters, setFilters }: ChosenProps) {
  const t = useTexts(texts);
  const dark = useIsDark();
  const all = useMemo(() => gpusOf(data), [data]);
  const { model, pool, find } = filters;
  const shown = useMemo(() => chosen(all, { model, pool, q: find }), [all, model, pool, find]);
  const legend = useMemo(() => legendOf(coloring, all, dark), [coloring, all, dark]);
  if (all.length === 0) return <EmptyState icon={CircuitBoard} title={t("noGpus")} hint={t("noGpusHint")} />;
  return (
    <Stack gap="sm">
      <Group gap="xs" justify="space-between">
        <MapLegend coloring={coloring} legend={legend} />
        <Group gap="xs">
          {shown.length < all.length && (
            <Text size="xs" c="dimmed" role="status">
              {t("shown", { n: shown.length, all: all.length })}
            </Text>
          )}
          <Suspense fallback={<Skeleton w={140} h={30} />}>
            {data.models.length > 1 && (
              <FilterSelect
                label={t("model")}
                everything={t("allModels")}
                options={data.models}
                value={model}
                onChange={(value) => setFilters({ model: value })}
              />
            )}
            {data.pools.length > 1 && (
              <FilterSelect
                label={t("pool")}
                everything={t("allPools")}
                options={data.pools}
                value={pool}
                onChange={(value) => setFilters({ pool: value })}
              />
            )}
          </Suspense>
          <TextInput
            size="xs"
            w={210}
            aria-label={t("find")}
            placeholder={t("find")}
            leftSection={<Search size={14} aria-hidden />}
            value={find}
            onChange={(event) => setFilters({ find: event.currentTarget.value })}
          />
        </Group>
      </Group>
      {shown.length === 0 ? (
        <EmptyState icon={SearchX} title={t("noneMatch")} hint={t("noneMatchHint")}>
          <Button variant="default" onClick={() => setFilters({ model: "", pool: "", find: "" })}>
            {t("showAll")}
          </Button>
        </EmptyState>
      ) : (
        <MapOrTable gpus={shown} coloring={coloring} legend={legend} asTable={filters.view === "table"} />
      )}
    </Stack>
  );
}

function MapOrTable({
  asTable,
  ...map
}: {
  asTable: boolean;
  gpus: readonly Gpu[];
  coloring: ChosenProps["coloring"];
  legend: ReturnType<typeof legendOf>;
}) {
  if (!asTable) return <GpuMap {...map} />;
  return (
    <Suspense fallback={<Skeleton h={260} />}>
      <MapTable gpus={map.gpus} />
    </Suspense>
  );
}
