import { Button, Text, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { Tag, Trash2 } from "lucide-react";
import { useState } from "react";

import { $api, api, sent, type Schema } from "@/api/client";
import { useAction } from "@/api/useAction";
import { useIsOperator } from "@/app/session";
import { texts } from "@/pages/people/budgets/texts";
import { DataTable } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { FormDrawer } from "@/parts/FormDrawer";
import { microText, parseMicro } from "@/parts/micro";
import { Panel } from "@/parts/Panel";
import { RowMenu } from "@/parts/RowMenu";
import { useFormAction } from "@/parts/useFormAction";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

type Price = Schema<"PriceView">;

export function PricesPanel() {
  const t = useTexts(texts);
  const isOperator = useIsOperator();
  const prices = $api.useQuery("get", "/prices");
  const [edited, setEdited] = useState<Price | "new">();
  const remove = useAction<string, unknown>({
    run: (model) => sent(api.DELETE("/prices", { params: { query: { model } } })),
    touches: ["/prices"],
    done: (_, model) => t("priceRemoved", { model }),
  });
  const currency = prices.data?.currency ?? "";
  return (
    <Panel title={t("prices")} tools={isOperator && <Button onClick={() => setEdited("new")}>{t("setPrice")}</Button>}>
      <Text size="sm" c="dimmed" mb="xs">
        {t("pricesHint")}
      </Text>
      <DataTable
        label={t("prices")}
        rows={prices.data?.items}
        columns={[
          { key: "model", title: t("model"), sort: (price) => price.model, render: (price) => price.model },
          { key: "weight", title: t("weight"), numeric: true, render: (price) => microText(price.weight_micro) },
          {
            key: "price",
            title: t("price"),
            numeric: true,
            render: (price) => `${microText(price.money_micro)} ${currency}`,
          },
        ]}
        rowKey={(price) => price.model}
        empty={<EmptyState icon={Tag} title={t("noPrices")} hint={isOperator ? t("noPricesHint") : undefined} />}
        {...(isOperator && {
          onOpen: setEdited,
          actions: (price: Price) => (
            <RowMenu
              label={t("actionsOf", { name: price.model })}
              actions={[
                { label: t("removePrice"), icon: Trash2, danger: true, onClick: () => remove.mutate(price.model) },
              ]}
            />
          ),
        })}
      />
      {edited !== undefined && (
        <PriceForm
          price={edited === "new" ? undefined : edited}
          currency={currency}
          onClose={() => setEdited(undefined)}
        />
      )}
    </Panel>
  );
}

function PriceForm({ price, currency, onClose }: { price: Price | undefined; currency: string; onClose: () => void }) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const isAmount = (text: string) => ((parseMicro(text) ?? -1) >= 0 ? null : t("notAmount"));
  const form = useForm({
    initialValues: {
      model: price?.model ?? "",
      weight_micro: microText(price?.weight_micro ?? 1_000_000),
      money_micro: microText(price?.money_micro ?? 0),
      currency,
    },
    validate: {
      model: (model) => (model.trim() === "" ? c("required") : null),
      weight_micro: isAmount,
      money_micro: isAmount,
    },
  });
  const save = useFormAction(form, {
    run: async (values) => {
      if (values.currency !== currency) {
        await sent(api.PUT("/prices/currency", { body: { currency: values.currency } }));
      }
      return sent(
        api.PUT("/prices", {
          body: {
            model: values.model.trim(),
            weight_micro: parseMicro(values.weight_micro) ?? 0,
            money_micro: parseMicro(values.money_micro) ?? 0,
          },
        }),
      );
    },
    touches: ["/prices", "/budgets"],
    done: (_, { model }) => t("priceSaved", { model }),
    onDone: onClose,
  });
  return (
    <FormDrawer opened title={t("priceTitle")} onClose={onClose} {...save}>
      <TextInput label={t("model")} required disabled={price !== undefined} {...form.getInputProps("model")} />
      <TextInput label={t("weight")} description={t("priceHint")} {...form.getInputProps("weight_micro")} />
      <TextInput label={t("price")} {...form.getInputProps("money_micro")} />
      <TextInput label={t("currency")} maxLength={12} {...form.getInputProps("currency")} />
    </FormDrawer>
  );
}
