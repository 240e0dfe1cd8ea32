import { Button, Checkbox, Group, SegmentedControl, TextInput } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { Search } from "lucide-react";
import { useMemo, useState } from "react";

import type { Schema } from "@/api/client";
import { JOB_KINDS } from "@/api/enumerations";
import { useAll } from "@/api/useAll";
import { useFilters } from "@/app/useFilters";
import {
  RESOURCES,
  VOLUMES,
  WHATS,
  type KindName,
  type Usage,
  type VolumeName,
  type What,
} from "@/pages/people/quotas/amounts";
import { BatchQuota } from "@/pages/people/quotas/BatchQuota";
import { Limits } from "@/pages/people/quotas/Limits";
import { QuotaCell, useWhat } from "@/pages/people/quotas/QuotaCell";
import { useSaveQuota } from "@/pages/people/quotas/useSaveQuota";
import { texts } from "@/pages/people/quotas/texts";
import { DataTable, type Column } from "@/parts/DataTable";
import { PageHeader } from "@/parts/PageHeader";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { counted, isFull } from "@/parts/quotaUse";
import { common, kinds, volumeTypes } from "@/texts/common";
import { navigation } from "@/texts/navigation";
import { useTexts } from "@/texts/texts";

const names = { ...kinds, ...volumeTypes };

/** `of` is one of the amounts; `set` is "chosen" or "all" while a batch is made. */
const FILTERS = { q: "", of: "gpus", full: "", set: "" };

export default function QuotasPage() {
  const t = useTexts(texts);
  const n = useTexts(navigation);
  const [filters, setFilters] = useFilters(FILTERS);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const quotas = useAll("/quotas");
  const whatLabel = useWhat();
  const what = WHATS.find((one) => one === filters.of) ?? "gpus";
  const columns = useColumns(what);
  const shown = useMemo(
    () => quotas.data?.filter((usage) => fits(usage, filters.q, filters.full !== "")),
    [quotas.data, filters.q, filters.full],
  );
  return (
    <>
      <PageHeader title={n("quotas")} detail={t("detail")}>
        <Button variant="default" onClick={() => setFilters({ set: "all" })}>
          {t("setAll")}
        </Button>
        {selected.size > 0 && (
          <Button onClick={() => setFilters({ set: "chosen" })}>{t("setChosen", { n: selected.size })}</Button>
        )}
      </PageHeader>
      <Limits />
      <Group gap="xs" mb="sm">
        <SegmentedControl
          size="xs"
          aria-label={t("of")}
          value={what}
          onChange={(of) => setFilters({ of })}
          data={WHATS.map((one) => ({ value: one, label: whatLabel(one) }))}
        />
        <TextInput
          size="xs"
          w={230}
          aria-label={t("searchUsers")}
          placeholder={t("searchUsers")}
          leftSection={<Search size={14} />}
          value={filters.q}
          onChange={(event) => setFilters({ q: event.currentTarget.value })}
        />
        <Checkbox
          size="xs"
          label={t("onlyFull")}
          checked={filters.full !== ""}
          onChange={(event) => setFilters({ full: event.currentTarget.checked ? "yes" : "" })}
        />
      </Group>
      {quotas.error !== null ? (
        <ProblemNote error={quotas.error} onRetry={() => void quotas.refetch()} />
      ) : (
        <Panel p={0}>
          <DataTable
            label={t("label")}
            rows={shown}
            columns={columns}
            rowKey={(usage) => usage.user}
            initialSort={{ key: "user", descending: false }}
            selected={selected}
            onSelect={setSelected}
          />
        </Panel>
      )}
      {filters.set !== "" && (filters.set === "all" || selected.size > 0) && (
        <BatchQuota
          users={filters.set === "all" ? undefined : [...selected]}
          onClose={() => setFilters({ set: "" })}
          onDone={() => {
            setFilters({ set: "" });
            setSelected(new Set());
          }}
        />
      )}
    </>
  );
}

function useColumns(what: What): readonly Column<Usage>[] {
  const c = useTexts(common);
  const k = useTexts(names);
  const save = useSaveQuota();
  const { mutate } = save;
  return useMemo(
    () => [
      {
        key: "user",
        title: c("user"),
        sort: (usage) => usage.user,
        render: (usage) => (
          <Link to="/users" search={{ open: usage.user }}>
            {usage.user}
          </Link>
        ),
      },
      ...(what === "storage" ? VOLUMES : JOB_KINDS).map((kind): Column<Usage> => ({
        key: kind,
        title: k(kind),
        width: "20%",
        sort: (usage) => {
          const held = heldOf(usage, kind, what);
          return held === undefined ? null : counted(held);
        },
        render: (usage) => {
          const held = heldOf(usage, kind, what);
          return held === undefined ? null : (
            <QuotaCell key={what} user={usage.user} kind={kind} what={what} held={held} onSave={mutate} />
          );
        },
      })),
    ],
    [what, c, k, mutate],
  );
}

function heldOf(usage: Usage, kind: KindName | VolumeName, what: What): Schema<"HeldView"> | undefined {
  return what === "storage" ? usage.volumes[kind] : usage.kinds[kind]?.[what];
}

function fits(usage: Usage, q: string, onlyFull: boolean): boolean {
  if (!usage.user.toLowerCase().includes(q.trim().toLowerCase())) return false;
  return (
    !onlyFull ||
    Object.values(usage.volumes).some(isFull) ||
    Object.values(usage.kinds).some((kind) => RESOURCES.some((what) => isFull(kind[what])))
  );
}
