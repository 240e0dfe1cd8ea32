/** The form of a maintenance window, with a preview of the jobs that are displaced when it begins. */
import { Fieldset, MultiSelect, Select, SimpleGrid, Textarea, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";

import { MaintenanceCreate } from "@/api/limits";
import { useAll } from "@/api/useAll";
import { DrainFindings } from "@/pages/fleet/nodes/DrainDialog";
import { texts } from "@/pages/scheduling/maintenance/texts";
import { useSaveWindow } from "@/pages/scheduling/maintenance/useMaintenanceAdmin";
import { draftOf, lengthOf, PERIODS, type Draft, type MaintenanceWindow } from "@/pages/scheduling/maintenance/window";
import { FormDrawer } from "@/parts/FormDrawer";
import { useNow } from "@/parts/Moment";
import { SettingNameInput } from "@/parts/SettingNameInput";
import { useSettingNameCheck } from "@/parts/useSettingNameCheck";
import { common } from "@/texts/common";
import { parseDuration } from "@/texts/durations";
import { useFormat } from "@/texts/format";
import { momentText } from "@/texts/localTime";
import { useTexts } from "@/texts/texts";

const MOST_OPTIONS = 100;

interface MaintenanceFormProps {
  readonly window: MaintenanceWindow | undefined;
  readonly taken: readonly string[];
  /** The nodes of a new window. */
  readonly nodes: readonly string[];
  readonly onClose: () => void;
}

export function MaintenanceForm({ window, taken, nodes, onClose }: MaintenanceFormProps) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const form = useMaintenanceForm(window, taken, nodes);
  const save = useSaveWindow(form, window, onClose);
  const { data: known } = useAll("/nodes");
  const { since, nodes: chosen, every_days: days } = form.values;
  // A period that the list does not have, from another program, stays as it is.
  const periods = [...new Set([...PERIODS, days])].map((value) => ({
    value,
    label: PERIODS.some((one) => one === value)
      ? t(`every_${value as (typeof PERIODS)[number]}`)
      : t("everyDays", { n: Number(value) }),
  }));
  return (
    <FormDrawer
      opened
      size="xl"
      title={window === undefined ? t("titleNew") : t("titleEdit", { name: window.name })}
      onClose={onClose}
      {...save}
      submitLabel={window === undefined ? t("plan") : c("save")}
    >
      {window === undefined && <SettingNameInput description={t("nameHint")} {...form.getInputProps("name")} />}
      <MultiSelect
        label={t("nodes")}
        required
        searchable
        clearable
        limit={MOST_OPTIONS}
        data={[...new Set([...(known?.map((node) => node.id) ?? []), ...chosen])]}
        {...form.getInputProps("nodes")}
      />
      <Times form={form} />
      <SimpleGrid cols={{ base: 1, xs: 2 }}>
        <Select label={t("repeats")} allowDeselect={false} data={periods} {...form.getInputProps("every_days")} />
        <TextInput
          label={t("drainBefore")}
          description={t("drainBeforeHint")}
          inputWrapperOrder={["label", "input", "description", "error"]}
          required
          {...form.getInputProps("drain_before")}
        />
      </SimpleGrid>
      <Textarea
        label={t("note")}
        autosize
        minRows={2}
        maxLength={MaintenanceCreate.note.most}
        {...form.getInputProps("note")}
      />
      {chosen.length > 0 && since !== "" && (
        <Fieldset legend={t("preview")}>
          <DrainFindings nodes={chosen} at={momentText(since)} />
        </Fieldset>
      )}
    </FormDrawer>
  );
}

type Form = ReturnType<typeof useMaintenanceForm>;

function Times({ form }: { form: Form }) {
  const t = useTexts(texts);
  const format = useFormat();
  const length = lengthOf(form.values);
  return (
    <SimpleGrid cols={{ base: 1, xs: 2 }}>
      <TextInput type="datetime-local" label={t("since")} required {...form.getInputProps("since")} />
      <TextInput
        type="datetime-local"
        label={t("until")}
        description={length === undefined ? undefined : t("lasts", { time: format.duration(length / 1000) })}
        inputWrapperOrder={["label", "input", "description", "error"]}
        required
        {...form.getInputProps("until")}
      />
    </SimpleGrid>
  );
}

function useMaintenanceForm(window: MaintenanceWindow | undefined, taken: readonly string[], nodes: readonly string[]) {
  const t = useTexts(texts);
  const now = useNow();
  const nameCheck = useSettingNameCheck(window === undefined, taken, t("nameTaken"));
  return useForm<Draft>({
    initialValues: draftOf(window, nodes, now),
    validateInputOnChange: true,
    validate: {
      name: nameCheck,
      nodes: (chosen) => (chosen.length === 0 ? t("nodesMissing") : null),
      until: (_, draft) => (lengthOf(draft) === undefined ? t("untilWrong") : null),
      drain_before: (text) => (parseDuration(text) === undefined ? t("drainBeforeWrong") : null),
    },
  });
}
