/** A rule to create or to change, read back in a sentence while it is typed. */
import {
  Alert,
  Checkbox,
  Group,
  MultiSelect,
  Select,
  SimpleGrid,
  Stack,
  Switch,
  TagsInput,
  Text,
  Textarea,
  TextInput,
} from "@mantine/core";
import { useForm, type UseFormReturnType } from "@mantine/form";
import { Quote } from "lucide-react";

import { $api, api, sent } from "@/api/client";
import { ALERT_ACTIONS } from "@/api/enumerations";
import { SEVERITIES } from "@/api/enumerations";
import { COMPARISONS } from "@/api/enumerations";
import { RuleCreate } from "@/api/limits";
import { RULE_NAME } from "@/api/names";
import { useAll } from "@/api/useAll";
import { bodyOf, draftOf, FITTING, thresholdOf, previewOf, type Draft } from "@/pages/alerts/rules/draft";
import { RuleRemoval } from "@/pages/alerts/rules/RuleRemoval";
import { useSentence, useSignalText, type RuleView } from "@/pages/alerts/rules/sentence";
import { texts } from "@/pages/alerts/rules/texts";
import { FormDrawer } from "@/parts/FormDrawer";
import { common, states } from "@/texts/common";
import { useFormAction } from "@/parts/useFormAction";
import { parseDuration } from "@/texts/durations";
import { useTexts } from "@/texts/texts";

type Form = UseFormReturnType<Draft>;

export function RuleForm({ rule, onClose }: { rule?: RuleView; onClose: () => void }) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const length = (text: string) => (parseDuration(text) === undefined ? t("notLength") : null);
  const form: Form = useForm<Draft>({
    initialValues: draftOf(rule),
    validateInputOnChange: true,
    validate: {
      name: (name) => (rule !== undefined || RULE_NAME.test(name) ? null : t("nameHint")),
      threshold: (text) => (thresholdOf(text) === undefined ? t("notNumber") : null),
      for_seconds: length,
      clear_seconds: length,
    },
  });
  const save = useFormAction(form, {
    run: (draft: Draft) => {
      const { name, settings } = bodyOf(draft);
      if (rule === undefined) return sent(api.POST("/alert-rules", { body: { ...settings, name } }));
      return sent(api.PATCH("/alert-rules/{name}", { params: { path: { name } }, body: settings }));
    },
    touches: ["/alert-rules", "/alerts"],
    done: (after) => t("saved", { name: after.name }),
    onDone: onClose,
  });
  return (
    <FormDrawer
      opened
      size="lg"
      title={rule === undefined ? t("newRule") : t("editRule", { name: rule.name })}
      submitLabel={rule === undefined ? c("create") : c("save")}
      onClose={onClose}
      {...save}
      foot={rule !== undefined && <RuleRemoval rule={rule} onGone={onClose} />}
    >
      {rule === undefined && (
        <TextInput
          label={t("name")}
          description={t("nameHint")}
          required
          data-autofocus
          {...form.getInputProps("name")}
        />
      )}
      <Condition form={form} builtin={rule?.builtin ?? false} />
      <Consequences form={form} />
      <ReadBack draft={form.values} />
    </FormDrawer>
  );
}

/** All that rules can watch; a short list that never changes while the server runs. */
function useSignals() {
  return $api.useQuery("get", "/alert-signals", {}, { staleTime: Infinity }).data?.items ?? [];
}

function Condition({ form, builtin }: { form: Form; builtin: boolean }) {
  const t = useTexts(texts);
  const signals = useSignals();
  const signalText = useSignalText();
  const unit = signals.find((signal) => signal.name === form.values.signal)?.unit ?? "";
  return (
    <>
      <Select
        label={t("signal")}
        description={builtin ? t("signalFixed") : undefined}
        disabled={builtin}
        allowDeselect={false}
        searchable
        data={signals.map((signal) => ({ value: signal.name, label: signalText(signal.name, signal.description) }))}
        {...form.getInputProps("signal")}
      />
      <SimpleGrid cols={2}>
        <Select
          label={t("comparison")}
          allowDeselect={false}
          data={COMPARISONS.map((value) => ({ value, label: t(value) }))}
          {...form.getInputProps("comparison")}
        />
        <TextInput
          label={t("threshold")}
          required
          inputMode="decimal"
          rightSection={
            <Text size="sm" c="dimmed">
              {unit}
            </Text>
          }
          rightSectionWidth={unit.length > 2 ? 52 : 36}
          {...form.getInputProps("threshold")}
        />
        <TextInput label={t("for")} description={t("forHint")} {...form.getInputProps("for_seconds")} />
        <TextInput label={t("clear")} description={t("clearHint")} {...form.getInputProps("clear_seconds")} />
      </SimpleGrid>
      <TagsInput
        label={t("subjects")}
        description={t("subjectsHint")}
        placeholder="a100-*"
        {...form.getInputProps("subjects")}
      />
    </>
  );
}

function Consequences({ form }: { form: Form }) {
  const t = useTexts(texts);
  const s = useTexts(states);
  const { data: channels } = useAll("/channels");
  return (
    <>
      <Select
        label={t("severity")}
        allowDeselect={false}
        data={SEVERITIES.map((value) => ({ value, label: s(value) }))}
        {...form.getInputProps("severity")}
      />
      <MultiSelect
        label={t("channels")}
        description={t("channelsHint")}
        clearable
        data={(channels ?? []).map((channel) => channel.name)}
        {...form.getInputProps("channels")}
      />
      <ActionChoice form={form} />
      <Textarea
        label={t("description")}
        autosize
        minRows={2}
        maxLength={RuleCreate.description.most}
        {...form.getInputProps("description")}
      />
      <Group gap="xl">
        <Switch label={t("notifyResolved")} {...form.getInputProps("notify_resolved", { type: "checkbox" })} />
        <Switch label={t("enabled")} {...form.getInputProps("enabled", { type: "checkbox" })} />
      </Group>
    </>
  );
}

/** The choice of actions. Actions that do not fit the rule's signal show that, instead of being refused later. */
function ActionChoice({ form }: { form: Form }) {
  const t = useTexts(texts);
  const scope = useSignals().find((signal) => signal.name === form.values.signal)?.scope ?? "gpu";
  return (
    <Checkbox.Group label={t("actions")} description={t("actionsHint")} {...form.getInputProps("actions")}>
      <Stack gap={6} mt={6}>
        {ALERT_ACTIONS.map((action) => {
          const fits = FITTING[action].includes(scope);
          const scopes = FITTING[action].length === 1 ? t("onlyGpus") : t("gpusAndNodes");
          return (
            <Checkbox
              key={action}
              size="sm"
              value={action}
              label={t(action)}
              disabled={!fits && !form.values.actions.includes(action)}
              description={fits ? undefined : t("unfit", { scopes })}
            />
          );
        })}
      </Stack>
    </Checkbox.Group>
  );
}

function ReadBack({ draft }: { draft: Draft }) {
  const t = useTexts(texts);
  const sentence = useSentence();
  const unit = useSignals().find((signal) => signal.name === draft.signal)?.unit ?? "";
  const preview = previewOf(draft, unit);
  if (preview === undefined) return null;
  return (
    <Alert variant="light" color="blue" role="note" icon={<Quote size={16} />} title={t("readsAs")}>
      {sentence(preview)}
    </Alert>
  );
}
