import { Alert, List, SegmentedControl, SimpleGrid, Skeleton, Stack } from "@mantine/core";

import { $api, type Schema } from "@/api/client";
import { useFilters } from "@/app/useFilters";
import { Defragmentation } from "@/pages/reports/analysis/Defragmentation";
import { EstimateAccuracy } from "@/pages/reports/analysis/EstimateAccuracy";
import { Findings } from "@/pages/reports/analysis/Findings";
import { RunningJobs } from "@/pages/reports/analysis/RunningJobs";
import { UsageBars } from "@/pages/reports/analysis/UsageBars";
import { texts } from "@/pages/reports/analysis/texts";
import { PageHeader } from "@/parts/PageHeader";
import { ProblemNote } from "@/parts/ProblemNote";
import { Stat } from "@/parts/Stat";
import { useFormat } from "@/texts/format";
import { navigation } from "@/texts/navigation";
import { useTexts } from "@/texts/texts";

const FILTERS = { period: "7d", by: "by_user" };
const PERIODS = ["24h", "7d", "30d", "90d"];

export default function AnalysisPage() {
  const page = useTexts(navigation);
  const t = useTexts(texts);
  const [filters, setFilters] = useFilters(FILTERS);
  const { data, error, refetch } = $api.useQuery(
    "get",
    "/analysis",
    { params: { query: { period: filters.period } } },
    { placeholderData: (before) => before },
  );
  const periods = (PERIODS.includes(filters.period) ? PERIODS : [...PERIODS, filters.period]).map((value) => ({
    value,
    label: label(value, t),
  }));
  return (
    <>
      <PageHeader title={page("analysis")}>
        <SegmentedControl
          size="xs"
          aria-label={t("period")}
          data={periods}
          value={filters.period}
          onChange={(period) => setFilters({ period })}
        />
      </PageHeader>
      {error !== null ? (
        <ProblemNote error={error} onRetry={() => void refetch()} />
      ) : (
        <Stack>
          <Totals total={data?.usage.total} />
          {data !== undefined && data.notes.length > 0 && <Notes notes={data.notes} />}
          <Findings findings={data?.findings} />
          <RunningJobs />
          <UsageBars usage={data?.usage} />
          <EstimateAccuracy period={filters.period} />
          <Defragmentation />
        </Stack>
      )}
    </>
  );
}

function label(period: string, t: (key: "hours" | "days", values: { n: string }) => string): string {
  const n = period.slice(0, -1);
  return period.endsWith("h") ? t("hours", { n }) : period.endsWith("d") ? t("days", { n }) : period;
}

function Totals({ total }: { total: Schema<"GpuHoursView"> | undefined }) {
  const t = useTexts(texts);
  const format = useFormat();
  if (total === undefined) return <Skeleton h={92} />;
  const { gpu_hours: held, measured_gpu_hours: measured, idle_gpu_hours: idle } = total;
  const known = measured > 0;
  return (
    <SimpleGrid cols={{ base: 2, md: 4 }}>
      <Stat label={t("gpuHours")} value={format.number(held)} detail={t("gpuHoursHint", { n: total.jobs })} />
      <Stat
        label={t("utilization")}
        value={format.percent(total.utilization, 1)}
        detail={
          known ? t("utilizationHint", { part: format.percent(held > 0 ? measured / held : 0) }) : t("notMeasured")
        }
      />
      <Stat
        label={t("idle")}
        value={format.number(idle)}
        detail={known ? t("idleHint", { part: format.percent(idle / measured) }) : t("notMeasured")}
      />
      <Stat label={t("energy")} value={format.number(total.energy_kwh)} unit="kWh" detail={t("energyHint")} />
    </SimpleGrid>
  );
}

function Notes({ notes }: { notes: readonly string[] }) {
  const t = useTexts(texts);
  return (
    <Alert color="yellow" title={t("notes")}>
      <List size="sm">
        {notes.map((note) => (
          <List.Item key={note}>{note}</List.Item>
        ))}
      </List>
    </Alert>
  );
}
