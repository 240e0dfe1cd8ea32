import { SimpleGrid } from "@mantine/core";

import { useMe } from "@/app/session";
import { words } from "@/pages/people/quotas/words";
import { Stat } from "@/parts/Stat";
import { common } from "@/words/common";
import { useFormat } from "@/words/format";
import { useWords } from "@/words/words";

/** What holds for everybody beside their quotas. */
export function Limits() {
  const t = useWords(words);
  const c = useWords(common);
  const format = useFormat();
  const { limits } = useMe();
  const told = (value: number | null) => (value === null ? c("unlimited") : format.number(value));
  return (
    <section aria-label={t("limitsTitle")}>
      <SimpleGrid cols={{ base: 2, md: 4 }} spacing="sm" mb="md">
        <Stat label={t("perUser")} value={told(limits.max_gpus_per_user)} detail={t("perUserHint")} />
        <Stat label={t("perJob")} value={told(limits.max_gpus_per_job)} detail={t("perJobHint")} />
        <Stat label={t("inTotal")} value={told(limits.max_total_gpus)} detail={t("inTotalHint")} />
        <Stat
          label={t("longest")}
          value={limits.max_seconds === null ? c("unlimited") : format.duration(limits.max_seconds)}
          detail={t("longestHint")}
        />
      </SimpleGrid>
    </section>
  );
}
