import { Button, Drawer, Group, SegmentedControl, SimpleGrid, Stack } from "@mantine/core";
import { Download, ReceiptText } from "lucide-react";
import { useMemo, useState } from "react";

import { $api, PREFIX, type Schema } from "@/api/client";
import { texts } from "@/pages/people/budgets/texts";
import { useBudgetText, type Budget } from "@/parts/AccountBudgets";
import { DataTable, type Column } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { ProblemNote } from "@/parts/ProblemNote";
import { Stat } from "@/parts/Stat";
import { common } from "@/texts/common";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

type Entry = Schema<"EntryView">;

export function StatementDrawer({ budget, onClose }: { budget: Budget; onClose: () => void }) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const words = useBudgetText();
  const columns = useColumns();
  const [month, setMonth] = useState("this");
  const { kind, name, unit } = budget;
  const span = useMemo(() => spanOf(month, new Date()), [month]);
  const query = { unit, ...span };
  const statement = $api.useQuery("get", "/budgets/{kind}/{name}/statement", {
    params: { path: { kind, name }, query },
  });
  const address = `${PREFIX}/budgets/${kind}/${encodeURIComponent(name)}/statement/file?${new URLSearchParams(query)}`;
  return (
    <Drawer
      opened
      onClose={onClose}
      size="min(960px, 96vw)"
      title={t("statementTitle", { name: words.account(budget), unit: words.unit(unit) })}
      closeButtonProps={{ "aria-label": c("close") }}
    >
      <Stack>
        <Group justify="space-between">
          <SegmentedControl
            size="xs"
            aria-label={t("period")}
            value={month}
            onChange={setMonth}
            data={[
              { value: "this", label: t("thisMonth") },
              { value: "last", label: t("lastMonth") },
            ]}
          />
          <Group gap="xs">
            {(["csv", "pdf"] as const).map((format) => (
              <Button
                key={format}
                size="xs"
                variant="default"
                leftSection={<Download size={14} />}
                component="a"
                href={`${address}&format=${format}`}
                download
              >
                {t(format)}
              </Button>
            ))}
          </Group>
        </Group>
        {statement.error !== null ? (
          <ProblemNote error={statement.error} onRetry={() => void statement.refetch()} />
        ) : (
          <>
            {statement.data !== undefined && (
              <SimpleGrid cols={2}>
                <Stat label={t("before")} value={words.amount(statement.data.opening_micro)} />
                <Stat label={t("after")} value={words.amount(statement.data.closing_micro)} />
              </SimpleGrid>
            )}
            <DataTable
              label={t("statement")}
              rows={statement.data?.items}
              columns={columns}
              rowKey={(entry) => `${entry.kind} ${entry.attempt ?? ""} ${entry.at}`}
              initialSort={{ key: "at", descending: true }}
              empty={<EmptyState icon={ReceiptText} title={t("noEntries")} />}
            />
          </>
        )}
      </Stack>
    </Drawer>
  );
}

/** Months in UTC, as the server counts them. The present one ends now. */
export function spanOf(month: string, now: Date): { since: string } | { since: string; until: string } {
  const begin = (back: number) => new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - back)).toISOString();
  return month === "this" ? { since: begin(0) } : { since: begin(1), until: begin(0) };
}

function useColumns(): readonly Column<Entry>[] {
  const t = useTexts(texts);
  const format = useFormat();
  const words = useBudgetText();
  return useMemo(
    () => [
      { key: "at", title: t("at"), sort: (entry) => entry.at, render: (entry) => format.dayTime(entry.at) },
      {
        key: "kind",
        title: t("entry"),
        sort: (entry) => entry.kind,
        render: (entry) => t(entry.kind === "grant" ? "grantKind" : entry.kind),
      },
      { key: "attempt", title: t("attempt"), render: (entry) => entry.attempt ?? "–" },
      { key: "job", title: t("job"), render: (entry) => entry.note || entry.job_name },
      { key: "user", title: t("byUser"), sort: (entry) => entry.user, render: (entry) => entry.user || entry.actor },
      {
        key: "amount",
        title: t("amount"),
        numeric: true,
        sort: (entry) => entry.amount_micro,
        render: (entry) => words.amount(entry.amount_micro),
      },
    ],
    [t, format, words],
  );
}
