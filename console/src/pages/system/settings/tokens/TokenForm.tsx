import { Radio, Select, Stack, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";

import { api, sent, type Schema } from "@/api/client";
import { TOKEN_SCOPES } from "@/api/enumerations";
import { TokenCreate } from "@/api/limits";
import { texts } from "@/pages/system/settings/tokens/texts";
import { FormDrawer } from "@/parts/FormDrawer";
import { useFormAction } from "@/parts/useFormAction";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

const DAYS = [1, 7, 30, 90, 365];

interface Draft {
  readonly name: string;
  readonly scope: (typeof TOKEN_SCOPES)[number];
  readonly days: string;
}

export function TokenForm({
  onClose,
  onMade,
}: {
  onClose: () => void;
  onMade: (token: Schema<"NewTokenView">) => void;
}) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const form = useForm<Draft>({
    initialValues: { name: "", scope: "jobs", days: "30" },
    validate: { name: (name) => (name.trim() === "" ? c("required") : null) },
  });
  const create = useFormAction(form, {
    run: ({ name, scope, days }: Draft) =>
      sent(
        api.POST("/me/tokens", {
          body: { name: name.trim(), scopes: [scope], expires_in_days: days === "" ? null : Number(days) },
        }),
      ),
    touches: ["/me/tokens"],
    onDone: onMade,
  });
  return (
    <FormDrawer opened title={t("newToken")} submitLabel={c("create")} onClose={onClose} {...create}>
      <TextInput
        label={t("name")}
        description={t("nameHint")}
        required
        maxLength={TokenCreate.name.most}
        data-autofocus
        {...form.getInputProps("name")}
      />
      <Radio.Group label={t("scope")} {...form.getInputProps("scope")}>
        <Stack gap="xs" mt="xs">
          {TOKEN_SCOPES.map((scope) => (
            <Radio key={scope} value={scope} label={t(scope)} description={t(`${scope}Hint`)} />
          ))}
        </Stack>
      </Radio.Group>
      <Select
        label={t("expires")}
        allowDeselect={false}
        data={[
          ...DAYS.map((n) => ({ value: String(n), label: t("days", { n }) })),
          { value: "", label: t("expiresUsual") },
        ]}
        {...form.getInputProps("days")}
      />
    </FormDrawer>
  );
}
