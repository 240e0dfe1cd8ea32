import { Button, Group, MultiSelect, Select, Switch, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";

import { api, sent, type Schema } from "@/api/client";
import { SCHEDULE_PERIODS } from "@/api/enumerations";
import { useAction } from "@/api/useAction";
import { useAll } from "@/api/useAll";
import { useWeekdays } from "@/pages/reports/weekdays";
import { texts } from "@/pages/reports/texts";
import { useConfirm } from "@/parts/confirm";
import { FormDrawer } from "@/parts/FormDrawer";
import { useFormAction } from "@/parts/useFormAction";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

type ScheduleView = Schema<"ScheduleView">;

interface Draft {
  readonly name: string;
  readonly period: (typeof SCHEDULE_PERIODS)[number];
  readonly weekday: string;
  readonly hour: string;
  readonly channels: string[];
  readonly enabled: boolean;
}

function draftOf(schedule: ScheduleView | undefined): Draft {
  const period = SCHEDULE_PERIODS.find((one) => one === schedule?.period) ?? "weekly";
  return {
    name: schedule?.name ?? "",
    period,
    weekday: String(schedule?.weekday ?? 0),
    hour: String(schedule?.hour ?? 6),
    channels: schedule?.channels ?? [],
    enabled: schedule?.enabled ?? true,
  };
}

export function ScheduleForm({ schedule, onClose }: { schedule?: ScheduleView; onClose: () => void }) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const weekdays = useWeekdays();
  const { data: channels } = useAll("/channels");
  const form = useForm<Draft>({
    initialValues: draftOf(schedule),
    validateInputOnChange: true,
    validate: { name: (name) => (schedule !== undefined || /^[a-z0-9][a-z0-9-]*$/.test(name) ? null : t("nameHint")) },
  });
  const save = useFormAction(form, {
    run: ({ name, weekday, hour, ...rest }: Draft) => {
      const settings = { ...rest, weekday: Number(weekday), hour: Number(hour) };
      if (schedule === undefined) return sent(api.POST("/report-schedules", { body: { ...settings, name } }));
      return sent(api.PATCH("/report-schedules/{name}", { params: { path: { name } }, body: settings }));
    },
    touches: ["/report-schedules"],
    done: (after) => t("saved", { name: after.name }),
    onDone: onClose,
  });
  return (
    <FormDrawer
      opened
      title={schedule === undefined ? t("newSchedule") : t("editSchedule", { name: schedule.name })}
      submitLabel={schedule === undefined ? c("create") : c("save")}
      onClose={onClose}
      {...save}
      foot={schedule !== undefined && <Removal name={schedule.name} onGone={onClose} />}
    >
      {schedule === undefined && (
        <TextInput
          label={t("name")}
          description={t("nameHint")}
          required
          data-autofocus
          {...form.getInputProps("name")}
        />
      )}
      <Group grow align="flex-start">
        <Select
          label={t("every")}
          allowDeselect={false}
          data={SCHEDULE_PERIODS.map((value) => ({ value, label: t(value) }))}
          {...form.getInputProps("period")}
        />
        {form.values.period === "weekly" && (
          <Select
            label={t("weekday")}
            allowDeselect={false}
            data={weekdays.map((label, day) => ({ value: String(day), label }))}
            {...form.getInputProps("weekday")}
          />
        )}
        <Select
          label={t("hour")}
          allowDeselect={false}
          data={Array.from({ length: 24 }, (_, hour) => ({
            value: String(hour),
            label: `${String(hour).padStart(2, "0")}:00`,
          }))}
          {...form.getInputProps("hour")}
        />
      </Group>
      <MultiSelect
        label={t("channels")}
        description={t("channelsHint")}
        clearable
        data={(channels ?? []).map((channel) => channel.name)}
        {...form.getInputProps("channels")}
      />
      <Switch label={t("enabled")} {...form.getInputProps("enabled", { type: "checkbox" })} />
    </FormDrawer>
  );
}

function Removal({ name, onGone }: { name: string; onGone: () => void }) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const confirm = useConfirm();
  const remove = useAction({
    run: () => sent(api.DELETE("/report-schedules/{name}", { params: { path: { name } } })),
    touches: ["/report-schedules"],
    done: () => t("scheduleDeleted", { name }),
    onDone: onGone,
  });
  return (
    <Button
      variant="light"
      color="red"
      loading={remove.isPending}
      onClick={() =>
        confirm({
          title: t("deleteScheduleTitle", { name }),
          text: t("deleteScheduleText"),
          action: t("deleteScheduleAction"),
          onConfirm: () => remove.mutate(undefined),
        })
      }
    >
      {c("delete")}
    </Button>
  );
}
