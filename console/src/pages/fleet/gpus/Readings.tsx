import type { Gpu } from "@/pages/fleet/gpus/rules";
import { megahertz } from "@/pages/fleet/gpus/GpuTable";
import { texts } from "@/pages/fleet/gpus/texts";
import classes from "@/pages/fleet/nodes/Node.module.css";
import { Stat } from "@/parts/Stat";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

/** The latest reading of a GPU, in figures. */
export function Readings({ gpu }: { gpu: Gpu }) {
  const t = useTexts(texts);
  const format = useFormat();
  const now = gpu.reading;
  const throttled = now?.throttle_reasons ?? [];
  const errors = now?.ecc_uncorrected ?? null;
  return (
    <div className={classes.figures}>
      <Stat
        label={t("utilization")}
        value={format.percent(now?.utilization)}
        detail={now !== null && t("processes", { n: now.processes })}
      />
      <Stat
        label={t("memory")}
        value={format.bytes(now?.memory_used_bytes)}
        detail={t("ofLimit", { limit: format.bytes(gpu.memory_bytes) })}
      />
      <Stat label={t("temperature")} value={format.celsius(now?.temperature_celsius)} />
      <Stat
        label={t("power")}
        value={format.watts(now?.power_watts)}
        detail={
          now?.power_limit_watts === null || now === null
            ? undefined
            : t("ofLimit", { limit: format.watts(now.power_limit_watts) })
        }
      />
      <Stat
        label={t("clocks")}
        value={megahertz(now?.sm_clock_mhz)}
        detail={
          throttled.length > 0
            ? t("throttled", { why: throttled.join(", ") })
            : now?.memory_clock_mhz === null || now === null
              ? undefined
              : t("clocksDetail", { mhz: Math.round(now.memory_clock_mhz) })
        }
      />
      <Stat
        label={t("ecc")}
        value={errors === null ? "–" : format.number(errors)}
        detail={
          now?.remap_failed === true
            ? t("remapFailed")
            : now?.ecc_corrected === null || now === null
              ? undefined
              : t("eccDetail", { n: now.ecc_corrected })
        }
      />
    </div>
  );
}
