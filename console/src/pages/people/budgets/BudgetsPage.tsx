import { Button, Stack } from "@mantine/core";
import { HandCoins, Pencil, Plus, ScrollText, Trash2, Wallet } from "lucide-react";
import { useMemo } from "react";

import { api, sent } from "@/api/client";
import { useAction } from "@/api/useAction";
import { useAll } from "@/api/useAll";
import { useIsOperator } from "@/app/session";
import { useFilters } from "@/app/useFilters";
import { BudgetForm } from "@/pages/people/budgets/BudgetForm";
import { GrantForm } from "@/pages/people/budgets/GrantForm";
import { PricesPanel } from "@/pages/people/budgets/PricesPanel";
import { StatementDrawer } from "@/pages/people/budgets/StatementDrawer";
import { texts } from "@/pages/people/budgets/texts";
import { useBudgetText, type Budget } from "@/parts/AccountBudgets";
import { useConfirm } from "@/parts/confirm";
import { DataTable, Faint, type Column } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { Meter } from "@/parts/Meter";
import { PageHeader } from "@/parts/PageHeader";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { RowMenu, type RowAction } from "@/parts/RowMenu";
import { navigation } from "@/texts/navigation";
import { useTexts } from "@/texts/texts";

/** Each names one row, by `keyOf`; `edit` may also be "new". */
const FILTERS = { edit: "", grant: "", open: "" };

export default function BudgetsPage() {
  const t = useTexts(texts);
  const n = useTexts(navigation);
  const isOperator = useIsOperator();
  const [filters, setFilters] = useFilters(FILTERS);
  const budgets = useAll("/budgets");
  const actionsOf = useRowActions(setFilters);
  const columns = useColumns();
  const named = (key: string) => budgets.data?.find((one) => keyOf(one) === key);
  const close = () => setFilters(FILTERS);
  const edited = named(filters.edit);
  const granted = named(filters.grant);
  const opened = named(filters.open);
  return (
    <>
      <PageHeader title={n("budgets")} detail={t("detail")}>
        {isOperator && (
          <Button leftSection={<Plus size={15} />} onClick={() => setFilters({ ...FILTERS, edit: "new" })}>
            {t("create")}
          </Button>
        )}
      </PageHeader>
      <Stack>
        {budgets.error !== null ? (
          <ProblemNote error={budgets.error} onRetry={() => void budgets.refetch()} />
        ) : (
          <Panel p={0}>
            <DataTable
              label={t("label")}
              rows={budgets.data}
              columns={columns}
              rowKey={keyOf}
              onOpen={(budget) => setFilters({ ...FILTERS, open: keyOf(budget) })}
              initialSort={{ key: "account", descending: false }}
              empty={<EmptyState icon={Wallet} title={t("none")} hint={t("noneHint")} />}
              actions={(budget) => (
                <RowMenu label={t("actionsOf", { name: keyOf(budget) })} actions={actionsOf(budget)} />
              )}
            />
          </Panel>
        )}
        <PricesPanel />
      </Stack>
      {isOperator && (edited !== undefined || filters.edit === "new") && (
        <BudgetForm key={filters.edit} budget={edited} onClose={close} />
      )}
      {isOperator && granted !== undefined && <GrantForm key={filters.grant} budget={granted} onClose={close} />}
      {opened !== undefined && <StatementDrawer key={filters.open} budget={opened} onClose={close} />}
    </>
  );
}

function keyOf(budget: Budget): string {
  return `${budget.kind}/${budget.name}/${budget.unit}`;
}

function useColumns(): readonly Column<Budget>[] {
  const t = useTexts(texts);
  const words = useBudgetText();
  return useMemo(
    () => [
      {
        key: "account",
        title: t("account"),
        sort: (budget) => `${budget.kind === "group" ? 0 : 1}${budget.name}`,
        render: (budget) => words.account(budget),
      },
      { key: "unit", title: t("unit"), sort: (budget) => budget.unit, render: (budget) => words.unit(budget.unit) },
      { key: "period", title: t("period"), sort: (budget) => budget.period, render: (budget) => t(budget.period) },
      {
        key: "spent",
        title: t("spent"),
        sort: (budget) => budget.spent_micro,
        render: (budget) => (
          <Meter
            value={budget.hard_micro === null ? null : budget.spent_micro / Math.max(1, budget.hard_micro)}
            label={t("spent")}
            text={words.amount(budget.spent_micro)}
            warnAt={1}
          />
        ),
      },
      {
        key: "soft",
        title: t("soft"),
        numeric: true,
        wide: true,
        sort: (budget) => budget.soft_micro,
        render: (budget) => (budget.soft_micro === null ? "–" : words.amount(budget.soft_micro)),
      },
      {
        key: "hard",
        title: t("hard"),
        numeric: true,
        sort: (budget) => budget.hard_micro,
        render: (budget) => (budget.hard_micro === null ? "–" : words.amount(budget.hard_micro)),
      },
      {
        key: "forecast",
        title: t("forecast"),
        sort: (budget) => budget.ends_at,
        render: (budget) => <Faint>{words.end(budget)}</Faint>,
      },
    ],
    [t, words],
  );
}

function useRowActions(open: (filters: typeof FILTERS) => void): (budget: Budget) => readonly RowAction[] {
  const t = useTexts(texts);
  const isOperator = useIsOperator();
  const confirm = useConfirm();
  const remove = useAction<Budget, unknown>({
    run: ({ kind, name, unit }) =>
      sent(api.DELETE("/budgets/{kind}/{name}", { params: { path: { kind, name }, query: { unit } } })),
    touches: ["/budgets"],
    done: (_, { name }) => t("removed", { name }),
  });
  return (budget) => {
    const { name } = budget;
    const statement = {
      label: t("statement"),
      icon: ScrollText,
      onClick: () => open({ ...FILTERS, open: keyOf(budget) }),
    };
    if (!isOperator) return [statement];
    return [
      statement,
      { label: t("edit"), icon: Pencil, onClick: () => open({ ...FILTERS, edit: keyOf(budget) }) },
      { label: t("grant"), icon: HandCoins, onClick: () => open({ ...FILTERS, grant: keyOf(budget) }) },
      ...(budget.is_limited
        ? [
            {
              label: t("remove"),
              icon: Trash2,
              danger: true,
              onClick: () =>
                confirm({
                  title: t("removeTitle", { name }),
                  text: t("removeText"),
                  action: t("remove"),
                  onConfirm: () => remove.mutate(budget),
                }),
            },
          ]
        : []),
    ];
  };
}
