import { TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";

import { api, sent } from "@/api/client";
import { GrantCreate } from "@/api/limits";
import { texts } from "@/pages/people/budgets/texts";
import { useBudgetText, type Budget } from "@/parts/AccountBudgets";
import { FormDrawer } from "@/parts/FormDrawer";
import { parseMicro } from "@/parts/micro";
import { useFormAction } from "@/parts/useFormAction";
import { useTexts } from "@/texts/texts";

export function GrantForm({ budget, onClose }: { budget: Budget; onClose: () => void }) {
  const t = useTexts(texts);
  const words = useBudgetText();
  const { kind, name, unit } = budget;
  const form = useForm({
    initialValues: { amount_micro: "", note: "" },
    validate: { amount_micro: (text) => (parseMicro(text) ? null : t("notAmount")) },
  });
  const save = useFormAction(form, {
    run: ({ amount_micro, note }) =>
      sent(
        api.POST("/budgets/{kind}/{name}/grants", {
          params: { path: { kind, name } },
          body: { unit, amount_micro: parseMicro(amount_micro) ?? 0, note },
        }),
      ),
    touches: ["/budgets", "/jobs"],
    done: () => t("granted", { name }),
    onDone: onClose,
  });
  return (
    <FormDrawer opened title={t("grantTitle", { name: words.account(budget) })} onClose={onClose} {...save}>
      <TextInput
        label={`${t("amount")} (${words.unit(unit)})`}
        description={t("amountHint")}
        required
        data-autofocus
        {...form.getInputProps("amount_micro")}
      />
      <TextInput label={t("note")} maxLength={GrantCreate.note.most} {...form.getInputProps("note")} />
    </FormDrawer>
  );
}
