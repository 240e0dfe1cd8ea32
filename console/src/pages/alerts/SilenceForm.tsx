import { Chip, Group, Stack, Text, Textarea, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";

import { api, sent } from "@/api/client";
import { SilenceCreate } from "@/api/limits";
import type { AlertView } from "@/pages/alerts/alert";
import { namesOf } from "@/pages/alerts/groups";
import { texts } from "@/pages/alerts/texts";
import { FormDrawer } from "@/parts/FormDrawer";
import { useFormAction } from "@/parts/useFormAction";
import { common } from "@/texts/common";
import { parseDuration } from "@/texts/durations";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

const USUAL = ["1h", "4h", "1d", "7d"];

/** A silence by patterns; or, for several alerts, one for each of them. */
export function SilenceForm({ alerts = [], onClose }: { alerts?: readonly AlertView[]; onClose: () => void }) {
  const isMany = alerts.length > 1;
  const [first] = alerts;
  const [rule, subject] = isMany ? ["*", "*"] : [first?.rule ?? "*", first?.subject ?? "*"];
  const t = useTexts(texts);
  const c = useTexts(common);
  const format = useFormat();
  const form = useForm({
    initialValues: { rule, subject, duration: "4h", reason: "" },
    validateInputOnChange: true,
    validate: {
      rule: (text) => (text.trim() === "" ? c("required") : null),
      subject: (text) => (text.trim() === "" ? c("required") : null),
      duration: (text) => ((parseDuration(text) ?? 0) > 0 ? null : t("notLength")),
    },
  });
  const silence = useFormAction(form, {
    run: async (body: typeof form.values) => {
      const wanted = isMany ? alerts.map((one) => ({ ...body, rule: one.rule, subject: one.subject })) : [body];
      const made = await Promise.all(wanted.map((one) => sent(api.POST("/silences", { body: one }))));
      return { subject: made.map((one) => one.subject).join(", "), ends_at: made[0]?.ends_at ?? "" };
    },
    touches: ["/silences", "/alerts"],
    done: (made) => t("silenced", { subject: made.subject, until: format.dateTime(made.ends_at) }),
    onDone: onClose,
  });
  return (
    <FormDrawer opened title={t("silenceNew")} onClose={onClose} {...silence} submitLabel={c("create")}>
      <Text size="sm" c="dimmed">
        {t("silenceHint")}
      </Text>
      {isMany ? (
        <Text size="sm">{t("silenceEach", { n: alerts.length, names: namesOf(alerts) })}</Text>
      ) : (
        <>
          <TextInput label={t("rulePattern")} required {...form.getInputProps("rule")} />
          <TextInput label={t("subjectPattern")} required {...form.getInputProps("subject")} />
        </>
      )}
      <Stack gap={6}>
        <TextInput label={t("silenceFor")} required {...form.getInputProps("duration")} />
        <Group gap={6}>
          {USUAL.map((length) => (
            <Chip
              key={length}
              size="xs"
              checked={form.values.duration === length}
              onChange={() => form.setFieldValue("duration", length)}
            >
              {length}
            </Chip>
          ))}
        </Group>
      </Stack>
      <Textarea
        label={t("silenceReason")}
        autosize
        minRows={2}
        maxLength={SilenceCreate.reason.most}
        {...form.getInputProps("reason")}
      />
    </FormDrawer>
  );
}
