import { Select, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";

import { api, sent, type Schema } from "@/api/client";
import { useAll } from "@/api/useAll";
import { texts } from "@/pages/people/budgets/texts";
import type { Budget } from "@/parts/AccountBudgets";
import { FormDrawer } from "@/parts/FormDrawer";
import { microText, parseMicro } from "@/parts/micro";
import { useFormAction } from "@/parts/useFormAction";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

interface Values {
  readonly kind: Budget["kind"];
  readonly name: string;
  readonly unit: Budget["unit"];
  readonly period: Budget["period"];
  /** Empty: no limit. */
  readonly soft_micro: string;
  readonly hard_micro: string;
}

export function BudgetForm({ budget, onClose }: { budget: Budget | undefined; onClose: () => void }) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const users = useAll("/users");
  const groups = useAll("/groups");
  const typed = (micro: number | null | undefined) => (micro === null || micro === undefined ? "" : microText(micro));
  const isAmount = (text: string) => text.trim() === "" || (parseMicro(text) ?? -1) >= 0;
  const form = useForm<Values>({
    initialValues: {
      kind: budget?.kind ?? "group",
      name: budget?.name ?? "",
      unit: budget?.unit ?? "gpu-hours",
      period: budget?.period ?? "month",
      soft_micro: typed(budget?.soft_micro),
      hard_micro: typed(budget?.hard_micro),
    },
    validate: {
      name: (name) => (name === "" ? c("required") : null),
      hard_micro: (text) => (isAmount(text) ? null : t("notAmount")),
      soft_micro: (text, values) => {
        if (!isAmount(text)) return t("notAmount");
        const soft = parseMicro(text);
        const hard = parseMicro(values.hard_micro);
        return soft !== undefined && hard !== undefined && soft > hard ? t("softAbove") : null;
      },
    },
  });
  const save = useFormAction(form, {
    run: saveBudget,
    touches: ["/budgets", "/jobs"],
    done: (_, { name }) => t("saved", { name }),
    onDone: onClose,
  });
  const names = (form.values.kind === "user" ? users.data : groups.data)?.map((one) => one.name) ?? [];
  return (
    <FormDrawer
      opened
      title={budget === undefined ? t("create") : t("editTitle", { name: budget.name })}
      onClose={onClose}
      {...save}
    >
      {budget === undefined && (
        <>
          <Select
            label={t("kind")}
            allowDeselect={false}
            data={[
              { value: "group", label: t("group") },
              { value: "user", label: t("user") },
            ]}
            {...form.getInputProps("kind")}
          />
          <Select label={t("name")} required searchable data={names} {...form.getInputProps("name")} />
          <Select
            label={t("unit")}
            allowDeselect={false}
            data={[
              { value: "gpu-hours", label: t("gpuHours") },
              { value: "money", label: t("money") },
            ]}
            {...form.getInputProps("unit")}
          />
        </>
      )}
      <Select
        label={t("period")}
        allowDeselect={false}
        data={(["month", "quarter", "total"] as const).map((value) => ({ value, label: t(value) }))}
        {...form.getInputProps("period")}
      />
      <TextInput label={t("hard")} description={t("limitHint")} {...form.getInputProps("hard_micro")} />
      <TextInput label={t("soft")} description={t("softHint")} {...form.getInputProps("soft_micro")} />
    </FormDrawer>
  );
}

function saveBudget({ kind, name, unit, period, soft_micro, hard_micro }: Values): Promise<unknown> {
  const body: Schema<"BudgetPut"> = {
    unit,
    period,
    soft_micro: parseMicro(soft_micro) ?? null,
    hard_micro: parseMicro(hard_micro) ?? null,
  };
  return sent(api.PUT("/budgets/{kind}/{name}", { params: { path: { kind, name } }, body }));
}
