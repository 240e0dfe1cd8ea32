/** Every preemption: the victim, the job that preempted it, the rule, the work lost, and when the victim ran again. Scientists see their own. */
import { Badge, Button, Group, Text, TextInput } from "@mantine/core";
import { Handshake, Search } from "lucide-react";
import { useMemo } from "react";

import type { Schema } from "@/api/client";
import { PREEMPTION_RULES } from "@/api/enumerations";
import { usePages } from "@/api/useAll";
import { useIsOperator } from "@/app/session";
import { useFilters } from "@/app/useFilters";
import { Return } from "@/pages/jobs/job/ReceiptsPanel";
import { receipts as receiptTexts, rules } from "@/pages/jobs/job/texts";
import { sinceOf, TIMES } from "@/pages/jobs/list/filters";
import { texts as times } from "@/pages/jobs/list/texts";
import { JobLink } from "@/pages/jobs/why/JobRef";
import { receipts as texts } from "@/pages/scheduling/queue/texts";
import { DataTable, Faint, NothingFound, type Column } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import FilterSelect from "@/parts/FilterSelect";
import { Moment, useNow } from "@/parts/Moment";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { common } from "@/texts/common";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

type Receipt = Schema<"ReceiptView">;

const FILTERS = { rule: "", user: "", since: "" } as const;

export function ReceiptsTab() {
  const t = useTexts(texts);
  const c = useTexts(common);
  const now = useNow();
  const [filters] = useFilters(FILTERS);
  const since = sinceOf(filters.since, now);
  const query = useMemo(
    () => ({ rule: filters.rule || undefined, user: filters.user.trim() || undefined, since }),
    [filters.rule, filters.user, since],
  );
  const { items, error, hasMore, isLoadingMore, loadMore, retry } = usePages("/receipts", query);
  const columns = useColumns();
  const isFiltered = Object.values(filters).some((value) => value !== "");
  return (
    <>
      <FilterBar />
      <Panel title={t("title")}>
        {error !== null && items === undefined ? (
          <ProblemNote error={error} onRetry={retry} />
        ) : (
          <DataTable
            label={t("title")}
            rows={items}
            columns={columns}
            rowKey={(receipt) => String(receipt.id)}
            empty={
              isFiltered ? <NothingFound /> : <EmptyState icon={Handshake} title={t("none")} hint={t("noneHint")} />
            }
            foot={
              hasMore && (
                <Button variant="default" mt="sm" loading={isLoadingMore} onClick={loadMore}>
                  {c("loadMore")}
                </Button>
              )
            }
          />
        )}
      </Panel>
    </>
  );
}

function FilterBar() {
  const t = useTexts(texts);
  const tr = useTexts(rules);
  const tt = useTexts(times);
  const isOperator = useIsOperator();
  const [filters, setFilters] = useFilters(FILTERS);
  return (
    <Group gap="xs" mb="sm" role="search" aria-label={t("filter")}>
      <FilterSelect
        label={t("rule")}
        everything={t("anyRule")}
        width={210}
        options={PREEMPTION_RULES.map((value) => ({ value, label: tr(value) }))}
        value={filters.rule}
        onChange={(rule) => setFilters({ rule })}
      />
      <FilterSelect
        label={t("at")}
        everything={tt("anyTime")}
        width={170}
        options={TIMES.map((value) => ({ value, label: tt(value) }))}
        value={filters.since}
        onChange={(since) => setFilters({ since })}
      />
      {isOperator && (
        <TextInput
          size="xs"
          w={200}
          aria-label={t("user")}
          placeholder={t("user")}
          leftSection={<Search size={14} aria-hidden />}
          maxLength={253}
          value={filters.user}
          onChange={(event) => setFilters({ user: event.currentTarget.value })}
        />
      )}
    </Group>
  );
}

function useColumns(): readonly Column<Receipt>[] {
  const t = useTexts(texts);
  const tt = useTexts(receiptTexts);
  const tr = useTexts(rules);
  const format = useFormat();
  return useMemo(
    () => [
      {
        key: "loser",
        title: t("preemptedJob"),
        render: (one) => (
          <>
            <Side id={one.job} name={one.job_name} user={one.user} />
            {/* There the column of times does not fit. */}
            <Text size="xs" c="dimmed" component="div" hiddenFrom="sm">
              <Moment at={one.at} />
            </Text>
          </>
        ),
      },
      {
        key: "winner",
        title: t("to"),
        render: (one) => <Side id={one.for_job} name={one.for_job_name} user={one.for_user} />,
      },
      {
        key: "rule",
        title: t("rule"),
        wide: true,
        render: (one) => (
          <Badge variant="default" tt="none" fw={500} miw="max-content" title={one.detail}>
            {tr(one.rule)}
          </Badge>
        ),
      },
      { key: "gpus", title: t("gpus"), numeric: true, wide: true, render: (one) => format.number(one.gpus) },
      {
        key: "lost",
        title: t("lost"),
        numeric: true,
        wide: true,
        render: (one) => (
          <>
            {format.number(one.lost_gpu_seconds / 3_600)}
            {one.saved !== null && <Faint>{tt(one.saved ? "saved" : "notSaved")}</Faint>}
          </>
        ),
      },
      { key: "back", title: t("back"), wide: true, render: (one) => <Return receipt={one} /> },
      { key: "at", title: t("at"), numeric: true, wide: true, render: (one) => <Moment at={one.at} /> },
    ],
    [t, tt, tr, format],
  );
}

function Side({ id, name, user }: { id: string; name: string; user: string }) {
  return (
    <>
      <JobLink id={id}>{name}</JobLink>
      <Text size="xs" c="dimmed">
        {id} · {user}
      </Text>
    </>
  );
}
