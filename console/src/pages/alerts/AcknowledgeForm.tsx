import { Text, Textarea } from "@mantine/core";
import { useForm } from "@mantine/form";

import { api, sent } from "@/api/client";
import { Acknowledgement } from "@/api/limits";
import { useMe } from "@/app/session";
import type { AlertView } from "@/pages/alerts/alert";
import { namesOf } from "@/pages/alerts/groups";
import { useAlertText } from "@/pages/alerts/alertText";
import { texts } from "@/pages/alerts/texts";
import { FormDrawer } from "@/parts/FormDrawer";
import { useFormAction } from "@/parts/useFormAction";
import { useTexts } from "@/texts/texts";

const MOST_CHARACTERS = Acknowledgement.note.most;

/** For one alert, or for several with the same note. */
export function AcknowledgeForm({ alerts, onClose }: { alerts: readonly AlertView[]; onClose: () => void }) {
  const t = useTexts(texts);
  const say = useAlertText();
  const me = useMe();
  const [first] = alerts;
  const subjects = namesOf(alerts);
  const form = useForm({ initialValues: { note: alerts.length === 1 ? (alerts[0]?.note ?? "") : "" } });
  const acknowledge = useFormAction(form, {
    run: ({ note }: { note: string }) =>
      Promise.all(
        alerts.map((alert) =>
          sent(api.POST("/alerts/{alert}/acknowledge", { params: { path: { alert: alert.id } }, body: { note } })),
        ),
      ),
    touches: ["/alerts", "/overview"],
    optimistic: (cache, { note }) =>
      cache.changeItems<AlertView>(
        "/alerts",
        (one) => alerts.some((alert) => alert.id === one.id),
        (one) => ({ ...one, note, acknowledged_by: me.name, acknowledged_at: new Date().toISOString() }),
      ),
    done: () => t("acknowledged", { subject: alerts.length === 1 ? (first?.subject ?? "") : subjects }),
    onDone: onClose,
  });
  return (
    <FormDrawer
      opened
      title={
        first !== undefined && alerts.length === 1
          ? t("acknowledgeTitle", { rule: first.rule, subject: first.subject })
          : t("acknowledgeMany", { n: alerts.length })
      }
      submitLabel={t("acknowledge")}
      onClose={onClose}
      {...acknowledge}
    >
      {alerts.map((alert) => (
        <Text size="sm" key={alert.id}>
          {say(alert)}
        </Text>
      ))}
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
