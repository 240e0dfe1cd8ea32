/** The present stage of a starting workbench, or the reason for its failed end. */
import { Alert, Anchor, Progress, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { CircleX, Info } from "lucide-react";
import type { ReactNode } from "react";

import { $api } from "@/api/client";
import { FAR, stageOf, type Stage } from "@/pages/workbenches/progress";
import type { Bench } from "@/pages/workbenches/useWorkbenches";
import { texts } from "@/pages/workbenches/texts";
import { startOf } from "@/parts/startOf";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

export function BenchProgress({ bench }: { bench: Bench }) {
  const t = useTexts(texts);
  const stage = stageOf(bench);
  const far = FAR[stage];
  if (far !== undefined) {
    return (
      <div role="status" aria-live="polite">
        <Progress value={far} size={6} radius="xl" animated aria-label={t("progress", { name: bench.name })} mb={6} />
        <Text size="sm">
          <StageText bench={bench} stage={stage} />
        </Text>
      </div>
    );
  }
  const why = bench.message !== "" ? bench.message : (bench.job.end_reason ?? "");
  if (stage === "failed")
    return <Ended icon={<CircleX size={18} />} color="red" text={t("failed", { why })} bench={bench} />;
  // Stopped by another user than its owner: the owner needs to know.
  const isExplained = bench.state === "stopped" && bench.job.end_reason !== "stopped_by_user" && why !== "";
  return isExplained ? <Ended icon={<Info size={18} />} color="gray" text={t("ended", { why })} bench={bench} /> : null;
}

function Ended({ icon, color, text, bench }: { icon: ReactNode; color: string; text: string; bench: Bench }) {
  const t = useTexts(texts);
  return (
    <Alert color={color} icon={icon} p="xs">
      {text}{" "}
      <Anchor
        size="sm"
        c="inherit"
        underline="always"
        renderRoot={(props) => <Link to={`/jobs/${bench.id}`} search={{ tab: "logs" }} {...props} />}
      >
        {t("logs")}
      </Anchor>
    </Alert>
  );
}

function StageText({ bench, stage }: { bench: Bench; stage: Stage }) {
  const t = useTexts(texts);
  const node = bench.job.allocation?.grants[0]?.node ?? "";
  if (stage === "queued") return <Waiting bench={bench} />;
  if (stage === "starting") return <>{t(bench.image === null ? "starting" : "startingImage", { node })}</>;
  return <>{t(stage === "ssh" ? "waitsSsh" : "waitsJupyter")}</>;
}

function Waiting({ bench }: { bench: Bench }) {
  const t = useTexts(texts);
  const format = useFormat();
  const { data: why } = $api.useQuery("get", "/jobs/{job}/why", { params: { path: { job: bench.id } } });
  const start = startOf(why?.planned_start, bench.job.estimated_start);
  const when =
    start === undefined ? "" : `, ${t(start.isBound ? "queuedUntil" : "queuedAbout", { ago: format.ago(start.at) })}`;
  return (
    <>
      {t("queued")}
      {when}
      {why !== undefined && why.summary !== "" ? `: ${why.summary}` : ""}
    </>
  );
}
