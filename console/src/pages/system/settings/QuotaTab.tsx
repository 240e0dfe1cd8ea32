/** The user's quotas and their use. */
import { SimpleGrid, Stack } from "@mantine/core";
import { Gauge } from "lucide-react";
import { useMemo } from "react";

import { $api, type Schema } from "@/api/client";
import { useMe } from "@/app/session";
import { quotaTexts as texts } from "@/pages/system/settings/quotaTexts";
import { AccountBudgets } from "@/parts/AccountBudgets";
import { DataTable, type Column } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { Meter } from "@/parts/Meter";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { part, useQuotaText } from "@/parts/quotaUse";
import { Stat } from "@/parts/Stat";
import { common, kinds, volumeTypes } from "@/texts/common";
import { useFormat } from "@/texts/format";
import { useTextOr, useTexts } from "@/texts/texts";

type Held = Schema<"HeldView">;
interface KindRow {
  readonly kind: string;
  readonly held: Schema<"KindQuotaView">;
}
interface VolumeRow {
  readonly type: string;
  readonly held: Held;
}

export function QuotaTab() {
  const { data, error, refetch } = $api.useQuery("get", "/me/quota");
  if (error !== null) return <ProblemNote error={error} onRetry={() => void refetch()} />;
  return (
    <Stack>
      <Limits />
      <AccountBudgets />
      <ByKind quota={data} />
      <ByVolume quota={data} />
    </Stack>
  );
}

type Quota = Schema<"QuotaUsageView">;

function ByKind({ quota }: { quota: Quota | undefined }) {
  const t = useTexts(texts);
  const columns = useKindColumns();
  const rows = useMemo(
    () => quota && Object.entries(quota.kinds).map(([kind, held]): KindRow => ({ kind, held })),
    [quota],
  );
  return (
    <Panel title={t("byKind")}>
      <DataTable
        label={t("byKind")}
        rows={rows}
        columns={columns}
        rowKey={(row) => row.kind}
        empty={<EmptyState icon={Gauge} title={t("none")} />}
      />
    </Panel>
  );
}

function ByVolume({ quota }: { quota: Quota | undefined }) {
  const t = useTexts(texts);
  const columns = useVolumeColumns();
  const rows = useMemo(
    () => quota && Object.entries(quota.volumes).map(([type, held]): VolumeRow => ({ type, held })),
    [quota],
  );
  return (
    <Panel title={t("byVolume")}>
      <DataTable
        label={t("byVolume")}
        rows={rows}
        columns={columns}
        rowKey={(row) => row.type}
        empty={<EmptyState icon={Gauge} title={t("none")} />}
      />
    </Panel>
  );
}

/** The limits that apply to everyone. */
function Limits() {
  const t = useTexts(texts);
  const c = useTexts(common);
  const format = useFormat();
  const { limits } = useMe();
  const number = (value: number | null) => (value === null ? c("unlimited") : format.number(value));
  return (
    <SimpleGrid cols={{ base: 1, sm: 3 }}>
      <Stat label={t("perUser")} value={number(limits.max_gpus_per_user)} detail={t("everybody")} />
      <Stat label={t("perJob")} value={number(limits.max_gpus_per_job)} detail={t("everybody")} />
      <Stat
        label={t("longest")}
        value={limits.max_seconds === null ? c("unlimited") : format.duration(limits.max_seconds)}
        detail={t("everybody")}
      />
    </SimpleGrid>
  );
}

function useKindColumns(): Column<KindRow>[] {
  const t = useTexts(texts);
  const c = useTexts(common);
  const kindText = useTextOr(kinds);
  const format = useFormat();
  return useMemo(() => {
    const amount = (
      key: "gpus" | "cpus" | "memory_bytes",
      title: string,
      shown: (value: number) => string,
    ): Column<KindRow> => ({
      key,
      title,
      render: (row) => <Use held={row.held[key]} shown={shown} label={`${row.kind} ${title}`} />,
    });
    return [
      {
        key: "kind",
        title: c("kind"),
        render: (row) => kindText(row.kind),
      },
      amount("gpus", c("gpus"), format.number),
      amount("cpus", c("cpus"), format.number),
      amount("memory_bytes", t("memory"), (value) => format.bytes(value)),
    ];
  }, [t, c, kindText, format]);
}

function useVolumeColumns(): Column<VolumeRow>[] {
  const t = useTexts(texts);
  const typeLabel = useTexts(volumeTypes);
  const format = useFormat();
  return useMemo(
    () => [
      {
        key: "type",
        title: t("volumeType"),
        render: (row: VolumeRow) =>
          row.type in volumeTypes ? typeLabel(row.type as keyof typeof volumeTypes) : row.type,
      },
      {
        key: "size",
        title: t("size"),
        render: (row: VolumeRow) => <Use held={row.held} shown={(value) => format.bytes(value)} label={row.type} />,
      },
    ],
    [t, typeLabel, format],
  );
}

function Use({ held, shown, label }: { held: Held; shown: (value: number) => string; label: string }) {
  const text = useQuotaText()(held, shown);
  if (held.limit === null) return <span className="num">{text}</span>;
  return <Meter value={part(held)} label={label} text={text} warnAt={1} />;
}
