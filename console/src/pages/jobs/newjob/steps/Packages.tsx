/** Packages to pick from, each with how many would start now and how long the next one waits; and why others are not offered. */
import { Badge, Group, Radio, Skeleton, Stack, Text } from "@mantine/core";
import { useQueries } from "@tanstack/react-query";

import type { Schema } from "@/api/client";
import { complete } from "@/api/complete";
import { problemOf } from "@/api/problem";
import { useAll } from "@/api/useAll";
import { useForm } from "@/pages/jobs/newjob/form";
import { OptionCard } from "@/parts/OptionCard";
import { planOf } from "@/pages/jobs/newjob/usePlan";
import { wholeOf } from "@/pages/jobs/newjob/draft/quantities";
import { texts } from "@/pages/jobs/newjob/texts";
import { kinds } from "@/texts/common";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

type Package = Schema<"PackageView">;

export function Packages() {
  const t = useTexts(texts);
  const { draft, set, facts, problem } = useForm();
  if (facts.offers === undefined) return <Skeleton h={120} />;
  return (
    <Stack gap="md">
      {facts.offers.length === 0 ? (
        <Text size="sm">{t("noPackages")}</Text>
      ) : (
        <Radio.Group
          label={t("packages")}
          labelProps={{ className: "visually-hidden" }}
          value={draft.package}
          onChange={(name) => set({ package: name })}
          error={problem("package")}
        >
          <Stack gap="xs" mb={4}>
            {facts.offers.map((offer) => (
              <OptionCard key={offer.name} value={offer.name} title={offer.name} aside={<Availability offer={offer} />}>
                <Contents item={offer} />
              </OptionCard>
            ))}
          </Stack>
        </Radio.Group>
      )}
      <Unavailable offers={facts.offers} />
    </Stack>
  );
}

/** 4 × A100-80G · 32 CPUs · 128 GiB */
export function useContents(): (item: Pick<Package, "gpus" | "cpus" | "memory_bytes" | "models" | "rdma">) => string {
  const t = useTexts(texts);
  const format = useFormat();
  return ({ gpus, cpus, memory_bytes, models, rdma }) => {
    const model = models.length === 0 ? t("anyGpu") : models.join(" / ");
    const device = gpus === 0 ? t("cpuOnly") : `${format.number(gpus)} × ${model}`;
    const rest = [
      cpus > 0 ? `${format.number(cpus)} CPU` : "",
      memory_bytes > 0 ? format.bytes(memory_bytes) : "",
      rdma ? "RDMA" : "",
    ];
    return [device, ...rest].filter((text) => text !== "").join(" · ");
  };
}

function Contents({ item }: { item: Package }) {
  const contents = useContents();
  return (
    <Text size="sm" c="dimmed">
      {contents(item)}
      {item.description !== "" && ` · ${item.description}`}
    </Text>
  );
}

function Availability({ offer }: { offer: Package }) {
  const t = useTexts(texts);
  const format = useFormat();
  const free = offer.free_count ?? 0;
  const wait = offer.expected_wait_seconds ?? null;
  const when =
    free > 0 ? t("startsNow") : wait === null ? t("waitUnknown") : t("waitsAbout", { time: format.duration(wait) });
  return (
    <Group gap={6}>
      <Badge variant="light" color={free > 0 ? "teal" : "yellow"} tt="none" fw={500}>
        {t("freeNow", { n: free })}
      </Badge>
      <Text size="xs" c="dimmed" className="num">
        {when}
        {(offer.queued ?? 0) > 0 && ` · ${t("queuedThere", { n: offer.queued ?? 0 })}`}
      </Text>
    </Group>
  );
}

/** The others, each with the server's reason. */
function Unavailable({ offers }: { offers: readonly Package[] }) {
  const t = useTexts(texts);
  const k = useTexts(kinds);
  const contents = useContents();
  const { draft } = useForm();
  const all = useAll("/packages").data ?? [];
  const others = all.filter((item) => !offers.some((offer) => offer.name === item.name));
  const isOffered = (item: Package) => item.kinds.length === 0 || item.kinds.includes(draft.kind);
  const why = useReasons(others.filter(isOffered));
  if (others.length === 0) return null;
  return (
    <div>
      <Text size="sm" fw={600} mb={4}>
        {t("unavailable", { n: others.length })}
      </Text>
      <Stack gap={6} component="ul" m={0} pl={0} style={{ listStyle: "none" }}>
        {others.map((item) => (
          <li key={item.name}>
            <Text size="sm">
              {item.name}{" "}
              <Text span c="dimmed" size="sm">
                {contents(item)}
              </Text>
            </Text>
            <Text size="xs" c="dimmed">
              {isOffered(item)
                ? (why.get(item.name) ?? t("overQuotaPackage"))
                : t("offeredTo", { kinds: item.kinds.map((kind) => k(kind)).join(", ") })}
            </Text>
          </li>
        ))}
      </Stack>
    </div>
  );
}

/** A dry run of each says best why it cannot be had. */
function useReasons(items: readonly Package[]): Map<string, string> {
  const { draft } = useForm();
  const nodes = draft.kind === "distributed" ? { nodes: wholeOf(draft.nodes, 1, 10_000) ?? 1 } : {};
  const runs = draft.kind === "preset" ? { preset: draft.preset } : { kind: draft.kind, command: ["true"] };
  const asked = draft.kind === "preset" && draft.preset === "" ? [] : items;
  const bodies = asked.map((item) =>
    JSON.stringify(complete<Schema<"JobCreate">>({ ...runs, ...nodes, package: item.name })),
  );
  const results = useQueries({
    queries: bodies.map((body) => ({
      queryKey: ["post", "/jobs:plan", body],
      retry: false,
      queryFn: () => planOf(body),
    })),
  });
  const labels = asked.map((item, at): [string, string | undefined] => {
    const result = results[at];
    return [item.name, result?.data?.detail ?? (result?.error ? problemOf(result.error).detail : undefined)];
  });
  return new Map(labels.filter((one): one is [string, string] => one[1] !== undefined));
}
