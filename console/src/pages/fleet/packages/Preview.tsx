/** The resources of a package for a job, and whether the fleet has a node for it. */
import { Alert, List, Text } from "@mantine/core";
import { CircleCheck, TriangleAlert } from "lucide-react";

import type { Schema } from "@/api/client";
import type { Size } from "@/pages/fleet/packages/draft";
import { askedBy, fitOf, type Fit, type Node } from "@/pages/fleet/packages/fit";
import { texts } from "@/pages/fleet/packages/texts";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

const NAMED = 5;

export function Preview({
  size,
  flavor,
  nodes,
}: {
  size: Size;
  flavor: Schema<"FlavorView"> | undefined;
  nodes: readonly Node[];
}) {
  const t = useTexts(texts);
  const what = useWhat(size, flavor?.models ?? []);
  const fit = fitOf(askedBy(size, flavor), nodes);
  const isAble = fit.able.length > 0;
  const names =
    fit.able.slice(0, NAMED).join(", ") +
    (fit.able.length > NAMED ? ` ${t("andMore", { n: fit.able.length - NAMED })}` : "");
  return (
    <Alert
      variant="default"
      color={isAble ? "teal" : "orange"}
      title={t("preview")}
      icon={isAble ? <CircleCheck size={18} /> : <TriangleAlert size={18} />}
      role="status"
    >
      {what !== "" && <Text size="sm">{t("previewText", { what })}</Text>}
      {isAble ? (
        <Text size="sm">{t("couldRun", { n: fit.able.length, all: fit.all, names })}</Text>
      ) : (
        <Lacks fit={fit} />
      )}
    </Alert>
  );
}

function Lacks({ fit }: { fit: Fit }) {
  const t = useTexts(texts);
  const format = useFormat();
  return (
    <>
      <Text size="sm">{t("couldNever")}</Text>
      <List size="sm">
        {fit.lacks.map((lack) => (
          <List.Item key={lack.what}>
            {lack.what === "labels"
              ? t("noLabels", { labels: lack.labels })
              : lack.what === "memory"
                ? t("mostMemory", { bytes: format.bytes(lack.most) })
                : t(lack.what === "gpus" ? "mostGpus" : "mostCpus", { n: format.number(lack.most) })}
          </List.Item>
        ))}
      </List>
    </>
  );
}

function useWhat(size: Size, models: readonly string[]): string {
  const t = useTexts(texts);
  const format = useFormat();
  const model = models.length === 0 ? t("anyGpu") : models.join(" / ");
  return [
    size.gpus >= 1 && t("gpuOf", { n: size.gpus, model }),
    size.gpus > 0 &&
      size.gpus < 1 &&
      t("shareOf", { percent: format.percent(size.gpus, size.gpus < 0.01 ? 1 : 0), model }),
    size.cpus > 0 && t("cpuCount", { n: format.number(size.cpus) }),
    size.memory > 0 && t("memoryOf", { bytes: format.bytes(size.memory) }),
  ]
    .filter((part) => part !== false)
    .join(" · ");
}
