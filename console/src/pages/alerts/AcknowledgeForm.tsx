import { Text, Textarea } from "@mantine/core";
import { useForm } from "@mantine/form";

import { api, sent } from "@/api/client";
import { useMe } from "@/app/session";
import type { AlertView } from "@/pages/alerts/alert";
import { texts } from "@/pages/alerts/texts";
import { FormDrawer } from "@/parts/FormDrawer";
import { useFormAction } from "@/parts/useFormAction";
import { useTexts } from "@/texts/texts";

const MOST_CHARACTERS = 1000;

export function AcknowledgeForm({ alert, onClose }: { alert: AlertView; onClose: () => void }) {
  const t = useTexts(texts);
  const me = useMe();
  const form = useForm({ initialValues: { note: alert.note } });
  const acknowledge = useFormAction(form, {
    run: ({ note }: { note: string }) =>
      sent(api.POST("/alerts/{alert}/acknowledge", { params: { path: { alert: alert.id } }, body: { note } })),
    touches: ["/alerts", "/overview"],
    optimistic: (cache, { note }) =>
      cache.changeItems<AlertView>(
        "/alerts",
        (one) => one.id === alert.id,
        (one) => ({ ...one, note, acknowledged_by: me.name, acknowledged_at: new Date().toISOString() }),
      ),
    done: () => t("acknowledged", { subject: alert.subject }),
    onDone: onClose,
  });
  return (
    <FormDrawer
      opened
      title={t("acknowledgeTitle", { rule: alert.rule, subject: alert.subject })}
      submitLabel={t("acknowledge")}
      onClose={onClose}
      {...acknowledge}
    >
      <Text size="sm">{alert.text}</Text>
      <Text size="sm" c="dimmed">
        {t("acknowledgeHint")}
      </Text>
      <Textarea
        label={t("note")}
        description={t("noteHint")}
        autosize
        minRows={3}
        maxLength={MOST_CHARACTERS}
        data-autofocus
        {...form.getInputProps("note")}
      />
    </FormDrawer>
  );
}
