/** The budgets of one user, or of the viewer with the viewer's group: what is spent, and how long the rest lasts. */
import { SimpleGrid } from "@mantine/core";

import { $api, type Schema } from "@/api/client";
import { useAll } from "@/api/useAll";
import { texts } from "@/parts/budgets.texts";
import { MICRO } from "@/parts/micro";
import { Panel } from "@/parts/Panel";
import { Stat } from "@/parts/Stat";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

export type Budget = Schema<"BudgetView">;

/** The words for a budget's unit, amounts and forecast. */
export function useBudgetText() {
  const t = useTexts(texts);
  const format = useFormat();
  const prices = $api.useQuery("get", "/prices");
  const currency = prices.data?.currency ?? "";
  const amount = (micro: number) => format.number(micro / MICRO);
  const unit = (of: Budget["unit"]) => (of === "gpu-hours" ? t("gpuHours") : currency === "" ? t("money") : currency);
  return {
    amount,
    unit,
    account: (of: Pick<Budget, "kind" | "name">) => t(of.kind === "group" ? "ofGroup" : "ofUser", { name: of.name }),
    use: (budget: Budget) =>
      budget.hard_micro === null
        ? t("spent", { spent: amount(budget.spent_micro), unit: unit(budget.unit) })
        : t("spentOf", {
            spent: amount(budget.spent_micro),
            limit: amount(budget.hard_micro),
            unit: unit(budget.unit),
          }),
    end: (budget: Budget) => {
      if (budget.left_micro === null) return "";
      if (budget.left_micro <= 0) return t("over", { amount: amount(-budget.left_micro) });
      return budget.ends_at === null ? t("lasts") : t("ends", { at: format.dayTime(budget.ends_at) });
    },
  };
}

export function AccountBudgets({ user }: { user?: string }) {
  const t = useTexts(texts);
  const words = useBudgetText();
  const budgets = useAll("/budgets");
  const shown = budgets.data?.filter((one) => user === undefined || (one.kind === "user" && one.name === user)) ?? [];
  if (shown.length === 0) return null;
  return (
    <Panel title={t("title")}>
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        {shown.map((budget) => (
          <Stat
            key={`${budget.kind} ${budget.name} ${budget.unit}`}
            label={`${words.account(budget)}, ${t(budget.period)}`}
            value={words.use(budget)}
            detail={words.end(budget)}
          />
        ))}
      </SimpleGrid>
    </Panel>
  );
}
