import { MultiSelect, Select, SimpleGrid, Switch, Text, Textarea, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";

import type { Schema } from "@/api/client";
import { JOB_KINDS } from "@/api/enumerations";
import { PackageCreate } from "@/api/limits";
import { cpusOf, draftOf, gpusOf, sizeOf, type Draft, type Package } from "@/pages/fleet/packages/draft";
import type { Node } from "@/pages/fleet/packages/fit";
import { Preview } from "@/pages/fleet/packages/Preview";
import { useSavePackage } from "@/pages/fleet/packages/usePackageAdmin";
import { texts } from "@/pages/fleet/packages/texts";
import { FormDrawer } from "@/parts/FormDrawer";
import { SettingNameInput } from "@/parts/SettingNameInput";
import { useSettingNameCheck } from "@/parts/useSettingNameCheck";
import { common, kinds as kindTexts } from "@/texts/common";
import { useFormat } from "@/texts/format";
import { parseSize } from "@/texts/sizes";
import { useTexts } from "@/texts/texts";

type Flavor = Schema<"FlavorView">;

/** Fields beside each other stand in one row, however long their hints are. */
const HINT_BELOW = ["label", "input", "description", "error"] as const;

export interface PackageFormProps {
  readonly one: Package | undefined;
  readonly taken: readonly string[];
  readonly flavors: readonly Flavor[];
  readonly nodes: readonly Node[];
  readonly onClose: () => void;
}

export function PackageForm({ one, taken, flavors, nodes, onClose }: PackageFormProps) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const form = usePackageForm(one, taken, flavors);
  const save = useSavePackage(form, one, onClose);
  const size = sizeOf(form.getValues());
  return (
    <FormDrawer
      opened
      title={one === undefined ? t("create") : t("titleEdit", { name: one.name })}
      onClose={onClose}
      {...save}
      submitLabel={one === undefined ? t("create") : c("save")}
    >
      {one === undefined ? (
        <SettingNameInput description={t("nameHint")} {...form.getInputProps("name")} />
      ) : (
        <Text size="sm" c="dimmed">
          {t("editHint")}
        </Text>
      )}
      <Amounts form={form} />
      <Select
        label={t("flavor")}
        description={t("flavorHint")}
        clearable
        searchable
        data={flavors.map((flavor) => ({ value: flavor.name, label: flavorLabel(flavor) }))}
        {...form.getInputProps("flavor")}
      />
      <Switch
        label={t("rdmaLabel")}
        description={t("rdmaHint")}
        {...form.getInputProps("rdma", { type: "checkbox" })}
      />
      <Kinds form={form} />
      <Textarea
        label={c("description")}
        autosize
        minRows={2}
        maxLength={PackageCreate.description.most}
        {...form.getInputProps("description")}
      />
      {size !== undefined && (
        <Preview size={size} flavor={flavors.find((flavor) => flavor.name === form.getValues().flavor)} nodes={nodes} />
      )}
    </FormDrawer>
  );
}

type Form = ReturnType<typeof usePackageForm>;

function usePackageForm(one: Package | undefined, taken: readonly string[], flavors: readonly Flavor[]) {
  const t = useTexts(texts);
  const nameCheck = useSettingNameCheck(one === undefined, taken, t("nameTaken"));
  return useForm<Draft>({
    initialValues: draftOf(one),
    validateInputOnChange: true,
    validate: {
      name: nameCheck,
      gpus: (text, draft) => (gpusOf(text) === undefined ? t("gpusWrong") : isNothing(draft) ? t("nothing") : null),
      cpus: (text) => (cpusOf(text) === undefined ? t("cpusWrong") : null),
      memory_bytes: (text) => (parseSize(text) === undefined ? t("memoryWrong") : null),
      flavor: (name, draft) =>
        gpusOf(draft.gpus) === 0 && (flavors.find((flavor) => flavor.name === name)?.models.length ?? 0) > 0
          ? t("flavorNeedsGpus")
          : null,
    },
  });
}

function isNothing(draft: Draft): boolean {
  const size = sizeOf(draft);
  return size !== undefined && size.gpus === 0 && size.cpus === 0 && size.memory === 0;
}

function flavorLabel(flavor: Flavor): string {
  return flavor.models.length === 0 ? flavor.name : `${flavor.name} (${flavor.models.join(" / ")})`;
}

function Amounts({ form }: { form: Form }) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const format = useFormat();
  const bytes = parseSize(form.getValues().memory_bytes);
  return (
    <SimpleGrid cols={{ base: 1, xs: 3 }}>
      <TextInput
        label={c("gpus")}
        inputWrapperOrder={[...HINT_BELOW]}
        description={t("gpusHint")}
        inputMode="decimal"
        required
        {...form.getInputProps("gpus")}
      />
      <TextInput
        label={c("cpus")}
        inputWrapperOrder={[...HINT_BELOW]}
        description={t("cpusHint")}
        inputMode="decimal"
        required
        {...form.getInputProps("cpus")}
      />
      <TextInput
        label={c("memory")}
        inputWrapperOrder={[...HINT_BELOW]}
        description={
          bytes === undefined ? t("memoryHint") : `${t("memoryIs", { bytes: format.bytes(bytes) })}. ${t("memoryHint")}`
        }
        required
        {...form.getInputProps("memory_bytes")}
      />
    </SimpleGrid>
  );
}

function Kinds({ form }: { form: Form }) {
  const t = useTexts(texts);
  const k = useTexts(kindTexts);
  return (
    <MultiSelect
      label={t("kinds")}
      description={t("kindsHint")}
      clearable
      data={JOB_KINDS.map((kind) => ({ value: kind, label: k(kind) }))}
      {...form.getInputProps("kinds")}
    />
  );
}
