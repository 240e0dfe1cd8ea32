/** How far a question is worked out, in a bar and in words. */
import { Progress as Bar, Text } from "@mantine/core";

import type { Simulation } from "@/pages/whatif/numbers";
import { texts } from "@/pages/whatif/texts";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

export function Progress({ simulation }: { simulation: Simulation }) {
  const t = useTexts(texts);
  const format = useFormat();
  const { fraction, phase, ended_jobs: ended, jobs, eta_seconds: eta } = simulation.progress;
  const text =
    phase === "base" || phase === "candidate"
      ? t("progressText", {
          percent: format.percent(fraction),
          phase: t(`phase_${phase}`),
          ended: format.number(ended),
          jobs: jobs === null ? "–" : format.number(jobs),
        })
      : t(`phase_${phase}`);
  return (
    <div style={{ minWidth: 160 }}>
      <Bar.Root size={6} radius="xl">
        <Bar.Section value={100 * (fraction ?? 0)} animated aria-label={t("progress")} aria-valuetext={text} />
      </Bar.Root>
      <Text size="xs" c="dimmed" mt={2}>
        {text}
        {eta !== null && ` · ${t("eta", { time: format.duration(eta) })}`}
      </Text>
    </div>
  );
}
