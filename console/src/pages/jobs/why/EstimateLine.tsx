/** When a job is expected to start, as a stretch of time: half of such starts come before its beginning, nine in ten before its end. */
import { Box, Group, Text } from "@mantine/core";

import type { Schema } from "@/api/client";
import { marksOf } from "@/pages/jobs/why/estimate";
import classes from "@/pages/jobs/why/EstimateLine.module.css";
import { capital } from "@/texts/texts";
import { texts } from "@/pages/jobs/why/texts";
import { useNow } from "@/parts/Moment";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

export function EstimateLine({ estimate }: { estimate: NonNullable<Schema<"WhyView">["estimate"]> }) {
  const t = useTexts(texts);
  const format = useFormat();
  const now = Math.max(useNow(), Date.now() - 10_000);
  const marks = marksOf(estimate, now);
  const [p50, p90] = [format.dayTime(estimate.p50), format.dayTime(estimate.p90)];
  return (
    <Box component="section" aria-label={t("estimate")}>
      <Group justify="space-between" mb={6} gap="4px 12px">
        <Text size="sm" fw={600}>
          {t("estimate")}
        </Text>
        <Text size="sm">{t("estimateText", { p50, p90 })}</Text>
      </Group>
      <div className={classes.line} role="img" aria-label={t("estimateText", { p50, p90 })}>
        <div className={classes.sure} style={{ width: `${marks.p50}%` }} />
        <div className={classes.likely} style={{ left: `${marks.p50}%`, width: `${marks.p90 - marks.p50}%` }} />
        <div className={classes.mark} style={{ left: `${marks.p50}%` }} title={`p50: ${p50}`} />
        <div className={classes.mark} style={{ left: `${marks.p90}%` }} title={`p90: ${p90}`} />
      </div>
      <Group justify="space-between" mt={4} wrap="nowrap" aria-hidden>
        <Text size="xs" c="dimmed">
          {t("now")}
        </Text>
        <Text size="xs" c="dimmed" className="num">
          {format.dayTime(now + marks.length)}
        </Text>
      </Group>
      <Text size="xs" c="dimmed">
        {capital(t("estimateBasis", { basis: estimate.basis, when: format.ago(estimate.made_at, now) }))}
      </Text>
    </Box>
  );
}
