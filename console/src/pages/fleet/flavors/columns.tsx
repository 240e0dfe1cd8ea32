import { Badge, Group } from "@mantine/core";
import { useMemo } from "react";

import { labelTexts, type Flavor } from "@/pages/fleet/flavors/draft";
import { texts } from "@/pages/fleet/flavors/texts";
import { Faint, type Column } from "@/parts/DataTable";
import { common } from "@/texts/common";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

export function useFlavorColumns(): readonly Column<Flavor>[] {
  const t = useTexts(texts);
  const c = useTexts(common);
  const format = useFormat();
  return useMemo(
    () => [
      {
        key: "name",
        title: c("name"),
        sort: (flavor) => flavor.name,
        render: (flavor) => (
          <>
            {flavor.name}
            {flavor.description !== "" && <Faint>{flavor.description}</Faint>}
          </>
        ),
      },
      {
        key: "models",
        title: t("models"),
        sort: (flavor) => flavor.models.join(" "),
        render: (flavor) => (
          <>
            {flavor.models.length === 0 ? t("anyModel") : flavor.models.join(" / ")}
            {(flavor.cpus_per_gpu > 0 || flavor.memory_bytes_per_gpu > 0) && (
              <Faint>
                {t("perGpuOf", { cpus: flavor.cpus_per_gpu, memory: format.bytes(flavor.memory_bytes_per_gpu) })}
              </Faint>
            )}
          </>
        ),
      },
      {
        key: "labels",
        title: t("labels"),
        wide: true,
        render: (flavor) => <Tags texts={labelTexts(flavor.labels)} none={t("noLabels")} />,
      },
      {
        key: "packages",
        title: t("packages"),
        wide: true,
        render: (flavor) => <Tags texts={flavor.packages} none={t("noneYet")} />,
      },
      {
        key: "gpus",
        title: t("gpusTotal"),
        numeric: true,
        sort: (flavor) => flavor.gpus_total,
        render: (flavor) => format.number(flavor.gpus_total),
      },
    ],
    [t, c, format],
  );
}

function Tags({ texts, none }: { texts: readonly string[]; none: string }) {
  if (texts.length === 0) return <>{none}</>;
  return (
    <Group gap={4}>
      {texts.map((text) => (
        <Badge key={text} variant="default" tt="none" fw={400}>
          {text}
        </Badge>
      ))}
    </Group>
  );
}
