import { Group, Radio, Stack, Text, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";

import { api, sent } from "@/api/client";
import type { ReportView } from "@/pages/reports/MadeTab";
import { texts } from "@/pages/reports/texts";
import { FormDrawer } from "@/parts/FormDrawer";
import { useFormAction } from "@/parts/useFormAction";
import { common } from "@/texts/common";
import { momentText } from "@/texts/localTime";
import { useTexts } from "@/texts/texts";

const SPANS = [
  ["24h", "last24"],
  ["7d", "last7"],
  ["30d", "last30"],
  ["custom", "custom"],
] as const;

interface Asked {
  readonly span: string;
  readonly since: string;
  readonly until: string;
}

function bodyOf({ span, since, until }: Asked) {
  if (span !== "custom") return { period: span };
  return until === "" ? { since: momentText(since) } : { since: momentText(since), until: momentText(until) };
}

export function ReportForm({ onClose, onMade }: { onClose: () => void; onMade: (report: ReportView) => void }) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const form = useForm<Asked>({
    initialValues: { span: "7d", since: "", until: "" },
    validateInputOnChange: true,
    validate: {
      since: (since, asked) => (asked.span === "custom" && since === "" ? c("required") : null),
      until: (until, asked) =>
        asked.span === "custom" && until !== "" && until <= asked.since ? t("endBeforeBegin") : null,
    },
  });
  const make = useFormAction(form, {
    run: (asked: Asked) => sent(api.POST("/reports", { body: bodyOf(asked) })),
    touches: ["/reports"],
    done: () => t("requested"),
    onDone: onMade,
  });
  return (
    <FormDrawer opened title={t("newReport")} submitLabel={t("make")} onClose={onClose} {...make}>
      <Radio.Group label={t("span")} {...form.getInputProps("span")}>
        <Stack gap="xs" mt="xs">
          {SPANS.map(([value, text]) => (
            <Radio key={value} value={value} label={t(text)} />
          ))}
        </Stack>
      </Radio.Group>
      {form.values.span === "custom" && (
        <Group grow align="flex-start">
          <TextInput type="datetime-local" label={t("from")} required {...form.getInputProps("since")} />
          <TextInput
            type="datetime-local"
            label={t("until")}
            description={t("untilHint")}
            inputWrapperOrder={["label", "input", "description", "error"]}
            {...form.getInputProps("until")}
          />
        </Group>
      )}
      <Text size="sm" c="dimmed">
        {t("formatsHint")}
      </Text>
    </FormDrawer>
  );
}
