import { SimpleGrid } from "@mantine/core";

import { useMe } from "@/app/session";
import { texts } from "@/pages/people/quotas/texts";
import { Stat } from "@/parts/Stat";
import { common } from "@/texts/common";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

/** The limits of the installation, which apply to everyone besides quotas. */
export function Limits() {
  const t = useTexts(texts);
  const c = useTexts(common);
  const format = useFormat();
  const { limits } = useMe();
  const amountText = (value: number | null) => (value === null ? c("unlimited") : format.number(value));
  return (
    <section aria-label={t("limitsTitle")}>
      <SimpleGrid cols={{ base: 2, md: 4 }} spacing="sm" mb="md">
        <Stat label={t("perUser")} value={amountText(limits.max_gpus_per_user)} detail={t("perUserHint")} />
        <Stat label={t("perJob")} value={amountText(limits.max_gpus_per_job)} detail={t("perJobHint")} />
        <Stat label={t("inTotal")} value={amountText(limits.max_total_gpus)} detail={t("inTotalHint")} />
        <Stat
          label={t("longest")}
          value={limits.max_seconds === null ? c("unlimited") : format.duration(limits.max_seconds)}
          detail={t("longestHint")}
        />
      </SimpleGrid>
    </section>
  );
}
