/** By what the list is narrowed, with how many jobs each state would show. */
import { Button, Chip, Group, MultiSelect, Select, Skeleton, TextInput } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { Search, X } from "lucide-react";
import { useEffect, useState } from "react";

import type { Schema } from "@/api/client";
import { JOB_STATES } from "@/api/enumerations";
import { useAll } from "@/api/useAll";
import { useMay } from "@/app/session";
import { isSameFilters, KINDS, NO_FILTERS, TIMES, type JobFilters } from "@/pages/jobs/list/filters";
import { texts } from "@/pages/jobs/list/texts";
import { common, kinds, states } from "@/texts/common";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

interface Props {
  readonly filters: JobFilters;
  readonly onChange: (change: Partial<JobFilters>) => void;
  readonly counts: Schema<"JobCountsView"> | undefined;
}

export function FilterBar({ filters, onChange, counts }: Props) {
  const t = useTexts(texts);
  const tc = useTexts(common);
  return (
    <>
      <Group gap="xs" mb="xs">
        <TextFilter value={filters.q} onChange={(q) => onChange({ q })} />
        <KindFilter filters={filters} onChange={onChange} />
        <UserFilter filters={filters} onChange={onChange} />
        <QueueFilter filters={filters} onChange={onChange} />
        <Select
          size="xs"
          w={170}
          aria-label={t("since")}
          placeholder={t("anyTime")}
          data={TIMES.map((time) => ({ value: time, label: t(time) }))}
          value={filters.since || null}
          clearable
          onChange={(since) => onChange({ since: since ?? "" })}
        />
        {filters.array !== "" && (
          <Button
            variant="light"
            rightSection={<X size={13} />}
            title={t("clearArray")}
            onClick={() => onChange({ array: "" })}
          >
            {t("array", { name: filters.array })}
          </Button>
        )}
        {!isSameFilters(filters, {}) && (
          <Button variant="subtle" color="gray" onClick={() => onChange({ ...NO_FILTERS, sort: filters.sort })}>
            {tc("clearFilters")}
          </Button>
        )}
      </Group>
      <StateFilter filters={filters} onChange={onChange} counts={counts} />
    </>
  );
}

/** Asked for when one stops typing. */
function TextFilter({ value, onChange }: { value: string; onChange: (text: string) => void }) {
  const t = useTexts(texts);
  const [typed, setTyped] = useState(value);
  const changeLater = useDebouncedCallback(onChange, 200);
  useEffect(() => setTyped(value), [value]);
  return (
    <TextInput
      size="xs"
      w={230}
      type="search"
      aria-label={t("searchLabel")}
      placeholder={t("searchPlaceholder")}
      leftSection={<Search size={14} />}
      value={typed}
      maxLength={253}
      onChange={(event) => {
        setTyped(event.currentTarget.value);
        changeLater(event.currentTarget.value.trim());
      }}
    />
  );
}

function KindFilter({ filters, onChange }: Omit<Props, "counts">) {
  const t = useTexts(texts);
  const tk = useTexts(kinds);
  return (
    <MultiSelect
      size="xs"
      w={190}
      aria-label={t("kinds")}
      placeholder={filters.kind.length === 0 ? t("anyKind") : undefined}
      data={KINDS.map((kind) => ({ value: kind, label: tk(kind) }))}
      value={[...filters.kind]}
      clearable
      onChange={(kind) => onChange({ kind })}
    />
  );
}

/** For those who see the jobs of others. */
function UserFilter({ filters, onChange }: Omit<Props, "counts">) {
  const t = useTexts(texts);
  const seesOthers = useMay("see-others-jobs");
  const { data: users } = useAll("/users", {}, seesOthers);
  if (!seesOthers) return null;
  const names = new Set([...(users ?? []).map((user) => user.name), ...filters.user]);
  return (
    <MultiSelect
      size="xs"
      w={180}
      aria-label={t("user")}
      placeholder={filters.user.length === 0 ? t("anyUser") : undefined}
      data={[...names].sort()}
      value={[...filters.user]}
      searchable
      clearable
      onChange={(user) => onChange({ user })}
    />
  );
}

function QueueFilter({ filters, onChange }: Omit<Props, "counts">) {
  const t = useTexts(texts);
  const { data: queues } = useAll("/queues");
  const names = new Set([
    ...(queues ?? []).map((queue) => queue.name),
    ...(filters.queue === "" ? [] : [filters.queue]),
  ]);
  return (
    <Select
      size="xs"
      w={150}
      aria-label={t("queue")}
      placeholder={t("anyQueue")}
      data={[...names].sort()}
      value={filters.queue || null}
      searchable
      clearable
      onChange={(queue) => onChange({ queue: queue ?? "" })}
    />
  );
}

function StateFilter({ filters, onChange, counts }: Props) {
  const t = useTexts(texts);
  const ts = useTexts(states);
  const format = useFormat();
  return (
    <Chip.Group multiple value={[...filters.state]} onChange={(state) => onChange({ state })}>
      <Group gap={6} mb="sm" role="group" aria-label={t("states")}>
        {JOB_STATES.map((state) => (
          <Chip key={state} value={state} size="xs" variant="light">
            {ts(state)}{" "}
            <span className="num" style={{ marginLeft: 4, fontWeight: 600 }}>
              {counts === undefined ? (
                <Skeleton component="span" display="inline-block" h={8} w={16} />
              ) : (
                format.number(counts.by_state[state] ?? 0)
              )}
            </span>
          </Chip>
        ))}
      </Group>
    </Chip.Group>
  );
}
