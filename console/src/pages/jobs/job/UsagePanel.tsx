import { SimpleGrid, Text } from "@mantine/core";

import type { Job } from "@/pages/jobs/actions/possible";
import { texts } from "@/pages/jobs/job/texts";
import { Panel } from "@/parts/Panel";
import { Stat } from "@/parts/Stat";
import { useFormat, type Format } from "@/texts/format";
import { useTexts } from "@/texts/texts";

/** Below it a job probably asked for too much. */
const HARDLY = 0.15;

/** Small jobs in watt-hours. */
export function energy(kwh: number, format: Format): string {
  return kwh < 1 ? `${format.number(kwh * 1000)} Wh` : `${format.number(kwh)} kWh`;
}

/** The resources that all attempts together have held and used. */
export function UsagePanel({ job }: { job: Job }) {
  const t = useTexts(texts);
  const format = useFormat();
  const usage = job.usage;
  if (usage === null || usage === undefined || usage.gpu_hours === 0) return null;
  return (
    <Panel title={t("usage")}>
      <SimpleGrid cols={{ base: 2, md: 4 }} spacing="sm">
        <Stat
          label={t("gpuHours")}
          value={format.number(usage.gpu_hours)}
          detail={t("idleHours", { n: format.number(usage.idle_gpu_hours) })}
        />
        <Stat label={t("meanUse")} value={format.percent(usage.utilization)} detail={t("measured")} />
        <Stat label={t("energy")} value={energy(usage.energy_kwh, format)} />
        <Stat label={t("peakMemory")} value={format.bytes(usage.memory_peak_bytes)} detail={t("perGpuPeak")} />
      </SimpleGrid>
      {usage.utilization !== null && usage.utilization < HARDLY && (
        <Text size="sm" c="dimmed" mt="sm">
          {t("hardlyUsed")}
        </Text>
      )}
    </Panel>
  );
}
