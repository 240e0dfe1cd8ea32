import { Fieldset, MultiSelect, Radio, Select, SimpleGrid, Stack, Switch, Text, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";

import { JOB_KINDS } from "@/api/enumerations";
import { useOptions, useOrderingPolicy } from "@/api/options";
import { useAll } from "@/api/useAll";
import { countOf, draftOf, weightOf, type Draft, type Queue } from "@/pages/scheduling/queues/draft";
import { useSaveQueue } from "@/pages/scheduling/queues/useQueueAdmin";
import { usePolicyText } from "@/pages/scheduling/queues/useQueueTexts";
import { orderingHints, placements, texts } from "@/pages/scheduling/queues/texts";
import { FormDrawer } from "@/parts/FormDrawer";
import { SettingNameInput } from "@/parts/SettingNameInput";
import { useSettingNameCheck } from "@/parts/useSettingNameCheck";
import { common, kinds as kindTexts } from "@/texts/common";
import { parseDuration } from "@/texts/durations";
import { useTextOr, useTexts } from "@/texts/texts";

/** Fields beside each other stand in one row, however long their hints are. */
const HINT_BELOW = ["label", "input", "description", "error"] as const;

export function QueueForm({
  queue,
  taken,
  onClose,
}: {
  queue: Queue | undefined;
  taken: readonly string[];
  onClose: () => void;
}) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const form = useQueueForm(queue, taken);
  const save = useSaveQueue(form, queue, onClose);
  return (
    <FormDrawer
      opened
      size="lg"
      title={queue === undefined ? t("titleNew") : t("titleEdit", { name: queue.name })}
      onClose={onClose}
      {...save}
      submitLabel={queue === undefined ? t("create") : c("save")}
    >
      {queue === undefined ? (
        <SimpleGrid cols={{ base: 1, xs: 2 }}>
          <SettingNameInput description={t("nameHint")} {...form.getInputProps("name")} />
          <PoolSelect {...form.getInputProps("pool")} />
        </SimpleGrid>
      ) : (
        <Text size="sm" c="dimmed">
          {t("editHint")}
        </Text>
      )}
      <Rules form={form} />
      <Shares form={form} />
      <Limits form={form} />
      <Users form={form} />
    </FormDrawer>
  );
}

type Form = ReturnType<typeof useQueueForm>;

function useQueueForm(queue: Queue | undefined, taken: readonly string[]) {
  const t = useTexts(texts);
  const count = (text: string) => (countOf(text) === undefined ? t("whole") : null);
  const nameCheck = useSettingNameCheck(queue === undefined, taken, t("nameTaken"));
  return useForm<Draft>({
    initialValues: draftOf(queue),
    validateInputOnChange: true,
    validate: {
      name: nameCheck,
      weight: (text) => (weightOf(text) === undefined ? t("weightWrong") : null),
      guaranteed_gpus: count,
      max_gpus: count,
      max_length: count,
      max_job_gpus: count,
      min_job_gpus: (text, draft) =>
        count(text) ?? ((countOf(text) ?? 0) > (countOf(draft.max_job_gpus) ?? Infinity) ? t("minOverMax") : null),
      max_seconds: (text) => (text.trim() !== "" && !((parseDuration(text) ?? 0) > 0) ? t("timeWrong") : null),
    },
  });
}

function PoolSelect(props: { value?: string; onChange?: (value: string | null) => void; error?: React.ReactNode }) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const { data: pools } = useAll("/pools");
  return (
    <Select
      label={c("pool")}
      description={t("poolHint")}
      required
      allowDeselect={false}
      searchable
      data={pools?.map((pool) => pool.name) ?? []}
      {...props}
    />
  );
}

function Rules({ form }: { form: Form }) {
  const t = useTexts(texts);
  const options = useOptions();
  const policyText = usePolicyText();
  const policyHint = useTextOr(orderingHints);
  const placementText = useTextOr(placements);
  const { policy } = form.getValues();
  const ranksJobs = useOrderingPolicy(policy)?.ranks_jobs === true;
  return (
    <>
      <Radio.Group label={t("policyTitle")} {...form.getInputProps("policy")}>
        <Stack gap={8} mt={6}>
          {options.ordering_policies.map(({ name, description }) => (
            <Radio key={name} value={name} label={policyText(name)} description={policyHint(name, description)} />
          ))}
        </Stack>
      </Radio.Group>
      <Switch
        label={t("preempts")}
        description={t(ranksJobs ? "preemptsHint" : "preemptsNot")}
        disabled={!ranksJobs}
        {...form.getInputProps("preempts", { type: "checkbox" })}
        checked={form.getValues().preempts && ranksJobs}
      />
      <Radio.Group label={t("blockingTitle")} {...form.getInputProps("blocking")}>
        <Stack gap={8} mt={6}>
          <Radio value="backfill" label={t("backfill")} description={t("backfillHint")} />
          <Radio value="strict" label={t("strict")} description={t("strictHint")} />
        </Stack>
      </Radio.Group>
      <Select
        label={t("placementTitle")}
        allowDeselect={false}
        data={options.placement_policies.map(({ name, description }) => ({
          value: name,
          label: placementText(name, `${name}: ${description}`),
        }))}
        {...form.getInputProps("placement")}
      />
    </>
  );
}

/** The fields of a queue's guarantee and weight. */
function Shares({ form }: { form: Form }) {
  const t = useTexts(texts);
  return (
    <Fieldset legend={t("sharesTitle")}>
      <SimpleGrid cols={{ base: 1, xs: 2 }}>
        <TextInput
          label={t("guaranteed")}
          inputWrapperOrder={[...HINT_BELOW]}
          description={t("guaranteedHint")}
          inputMode="numeric"
          {...form.getInputProps("guaranteed_gpus")}
        />
        <TextInput
          label={t("weight")}
          inputWrapperOrder={[...HINT_BELOW]}
          description={t("weightHint")}
          inputMode="decimal"
          {...form.getInputProps("weight")}
        />
      </SimpleGrid>
    </Fieldset>
  );
}

function Limits({ form }: { form: Form }) {
  const t = useTexts(texts);
  return (
    <Fieldset legend={t("limitsTitle")}>
      <SimpleGrid cols={{ base: 1, xs: 2 }}>
        <TextInput
          label={t("maxGpus")}
          inputWrapperOrder={[...HINT_BELOW]}
          description={t("maxGpusHint")}
          inputMode="numeric"
          {...form.getInputProps("max_gpus")}
        />
        <TextInput
          label={t("maxLength")}
          inputWrapperOrder={[...HINT_BELOW]}
          description={t("maxLengthHint")}
          inputMode="numeric"
          {...form.getInputProps("max_length")}
        />
        <TextInput
          label={t("minJob")}
          inputWrapperOrder={[...HINT_BELOW]}
          description={t("jobHint")}
          inputMode="numeric"
          {...form.getInputProps("min_job_gpus")}
        />
        <TextInput
          label={t("maxJob")}
          inputWrapperOrder={[...HINT_BELOW]}
          description={t("jobHint")}
          inputMode="numeric"
          {...form.getInputProps("max_job_gpus")}
        />
        <TextInput
          label={t("maxTime")}
          inputWrapperOrder={[...HINT_BELOW]}
          description={t("maxTimeHint")}
          {...form.getInputProps("max_seconds")}
        />
      </SimpleGrid>
    </Fieldset>
  );
}

function Users({ form }: { form: Form }) {
  const t = useTexts(texts);
  const k = useTexts(kindTexts);
  const { data: groups } = useAll("/groups");
  return (
    <>
      <MultiSelect
        label={t("kindsTitle")}
        description={t("kindsHint")}
        clearable
        data={JOB_KINDS.map((kind) => ({ value: kind, label: k(kind) }))}
        {...form.getInputProps("kinds")}
      />
      <MultiSelect
        label={t("groupsTitle")}
        description={t("groupsHint")}
        clearable
        searchable
        data={groups?.map((group) => group.name) ?? []}
        {...form.getInputProps("groups")}
      />
    </>
  );
}
