/** One workbench: what it is, how far it is, how one gets in, and what can be done with it. */
import { ActionIcon, Anchor, Button, Group, Stack, Text, Title, Tooltip } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { Play, Square, Trash2 } from "lucide-react";
import type { ReactNode } from "react";

import { useMe } from "@/app/session";
import { Access } from "@/pages/workbenches/Access";
import { BenchProgress } from "@/pages/workbenches/BenchProgress";
import { isOver } from "@/pages/workbenches/progress";
import { useBenchActions } from "@/pages/workbenches/useBenchActions";
import type { Bench } from "@/pages/workbenches/useWorkbenches";
import { texts } from "@/pages/workbenches/texts";
import { Moment } from "@/parts/Moment";
import { StateBadge } from "@/parts/StateBadge";
import { common } from "@/texts/common";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

export function BenchCard({ bench }: { bench: Bench }) {
  const t = useTexts(texts);
  const me = useMe();
  return (
    <Stack component="article" className="panel" p="md" gap="sm" aria-label={bench.name} data-state={bench.state}>
      <Group justify="space-between" wrap="nowrap" gap="xs">
        <div style={{ minWidth: 0 }}>
          <Title order={2} fz="md" style={{ overflow: "hidden", textOverflow: "ellipsis" }}>
            <Anchor
              inherit
              c="inherit"
              aria-label={t("details", { name: bench.name })}
              renderRoot={(props) => <Link to={`/jobs/${bench.id}`} {...props} />}
            >
              {bench.name}
            </Anchor>
          </Title>
          {bench.user !== me.name && (
            <Text size="xs" c="dimmed">
              {t("of", { user: bench.user })}
            </Text>
          )}
        </div>
        <StateBadge state={bench.state} />
      </Group>
      <Facts bench={bench} />
      <BenchProgress bench={bench} />
      <Access bench={bench} />
      <Buttons bench={bench} />
    </Stack>
  );
}

function Facts({ bench }: { bench: Bench }) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const format = useFormat();
  const { job } = bench;
  const model = job.allocation?.model ?? job.models.join(" / ");
  const gpus = job.gpus === 0 ? "0 GPU" : `${format.number(job.gpus)} × ${model || "GPU"}`;
  const rest = [
    job.cpus > 0 ? `${format.number(job.cpus)} CPU` : "",
    job.memory_bytes > 0 ? format.bytes(job.memory_bytes) : "",
    job.package ?? "",
  ];
  const facts: (readonly [string, ReactNode])[] = [
    [t("size"), [gpus, ...rest].filter((text) => text !== "").join(" · ")],
    [t("image"), bench.image ?? bench.venv ?? t("nodesOwn")],
    [t("node"), bench.state === "running" ? (job.allocation?.grants.map((grant) => grant.node).join(", ") ?? "") : ""],
    [t("idle"), idleText(bench, format.duration, t)],
    [t("until"), job.time_limit_seconds === null ? "" : format.duration(job.time_limit_seconds)],
    [c("created"), <Moment key="created" at={job.created_at} />],
  ];
  return (
    <dl style={{ margin: 0, display: "grid", gridTemplateColumns: "auto 1fr", columnGap: 14, rowGap: 3 }}>
      {facts
        .filter(([, value]) => value !== "")
        .map(([label, value]) => (
          <Fact key={label} label={label} value={value} />
        ))}
    </dl>
  );
}

function Fact({ label, value }: { label: string; value: ReactNode }) {
  return (
    <>
      <Text component="dt" size="sm" c="dimmed">
        {label}
      </Text>
      <Text component="dd" size="sm" m={0} style={{ overflowWrap: "anywhere" }}>
        {value}
      </Text>
    </>
  );
}

const JUST_NOW_SECONDS = 30;

function idleText(
  bench: Bench,
  duration: (seconds: number) => string,
  t: (key: keyof typeof texts, values?: Record<string, string>) => string,
): string {
  if (bench.idle_seconds === null || bench.state !== "running") return "";
  const now = bench.idle_seconds < JUST_NOW_SECONDS ? t("inUse") : duration(bench.idle_seconds);
  if (bench.idle_stop_seconds === null) return `${now} · ${t("neverStops")}`;
  const left = bench.idle_stop_seconds - bench.idle_seconds;
  return `${now} · ${left <= 0 ? t("idleStopSoon") : t("idleStop", { time: duration(left) })}`;
}

function Buttons({ bench }: { bench: Bench }) {
  const t = useTexts(texts);
  const { start, stop, remove } = useBenchActions();
  const over = isOver(bench);
  return (
    <Group justify="space-between" mt="auto">
      {over ? (
        <Button
          variant="light"
          leftSection={<Play size={14} />}
          aria-label={t("startName", { name: bench.name })}
          onClick={() => start(bench)}
        >
          {t("start")}
        </Button>
      ) : (
        <Button
          variant="default"
          leftSection={<Square size={13} />}
          disabled={bench.state === "stopping"}
          aria-label={t("stopName", { name: bench.name })}
          onClick={() => stop(bench)}
        >
          {t("stop")}
        </Button>
      )}
      <Tooltip label={over ? t("removeName", { name: bench.name }) : t("stopFirst")}>
        <ActionIcon
          variant="subtle"
          color="red"
          size="lg"
          aria-label={t("removeName", { name: bench.name })}
          aria-disabled={!over}
          data-disabled={over ? undefined : true}
          onClick={() => over && remove(bench)}
        >
          <Trash2 size={16} />
        </ActionIcon>
      </Tooltip>
    </Group>
  );
}
