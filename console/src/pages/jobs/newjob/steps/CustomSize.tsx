import { Checkbox, Group, MultiSelect, Select, SimpleGrid, Stack, Switch, TextInput } from "@mantine/core";

import { $api } from "@/api/client";
import { useAll } from "@/api/useAll";
import { useField, useForm } from "@/pages/jobs/newjob/form";
import { texts } from "@/pages/jobs/newjob/texts";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

export function CustomSize() {
  const t = useTexts(texts);
  const format = useFormat();
  const { draft, set, facts } = useForm();
  const field = useField();
  const preset = draft.kind === "preset" ? facts.preset : undefined;
  const asPreset = (value: string | undefined) =>
    preset === undefined || value === undefined ? undefined : t("asPreset", { value });
  const isElastic = draft.isElastic && draft.kind !== "workbench";
  return (
    <Stack gap="md">
      <SimpleGrid cols={{ base: 1, sm: 3 }} spacing="md">
        {!isElastic && (
          <TextInput
            label={t(draft.kind === "distributed" ? "gpusPerNodeLabel" : "gpusLabel")}
            description={<GpusHint gpus={draft.gpus} />}
            inputMode="decimal"
            placeholder={asPreset(format.number(preset?.gpus ?? 0))}
            {...field("gpus")}
          />
        )}
        <TextInput
          label={t("cpusLabel")}
          description={t("cpusHint")}
          inputMode="decimal"
          placeholder={asPreset(format.number(preset?.cpus ?? 0))}
          {...field("cpus")}
        />
        <TextInput
          label={t("memoryLabel")}
          description={t("memoryHint")}
          placeholder={asPreset(format.bytes(preset?.memory_bytes ?? 0))}
          {...field("memory")}
        />
      </SimpleGrid>
      {draft.kind !== "workbench" && (
        <Switch
          label={t("elastic")}
          checked={draft.isElastic}
          onChange={(event) => set({ isElastic: event.currentTarget.checked })}
        />
      )}
      {isElastic && (
        <Switch
          label={t("restartUnsaved")}
          description={t("restartUnsavedHint")}
          checked={draft.restart_unsaved}
          onChange={(event) => set({ restart_unsaved: event.currentTarget.checked })}
        />
      )}
      {isElastic && (
        <Group align="flex-start">
          <TextInput label={t("minGpus")} inputMode="numeric" {...field("min_gpus")} />
          <TextInput
            label={t("maxGpus")}
            description={t("maxGpusHint")}
            inputMode="numeric"
            inputWrapperOrder={["label", "input", "description", "error"]}
            {...field("max_gpus")}
          />
        </Group>
      )}
      <Hardware />
    </Stack>
  );
}

/** For a share of a GPU the hint says whether it is enforced. */
function GpusHint({ gpus }: { gpus: string }) {
  const t = useTexts(texts);
  const share = Number(gpus);
  const isShare = share > 0 && share < 1;
  const { data: about } = $api.useQuery("get", "/about", {}, { enabled: isShare });
  if (!isShare || about === undefined) return t("gpusHint");
  return t(about.gpu_shares.enforced ? "shareEnforced" : "shareNotEnforced");
}

/** A flavor, or models one by one. */
function Hardware() {
  const t = useTexts(texts);
  const { draft, set, problem } = useForm();
  const flavors = useAll("/flavors").data ?? [];
  const models = useModels();
  return (
    <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="md">
      {flavors.length > 0 && (
        <Select
          label={t("flavorLabel")}
          description={t("flavorHint")}
          clearable
          placeholder={t("anyFlavor")}
          data={flavors.map((flavor) => flavor.name)}
          value={draft.flavor || null}
          onChange={(flavor) => set({ flavor: flavor ?? "" })}
          error={problem("flavor")}
        />
      )}
      <MultiSelect
        label={t("modelLabel")}
        description={draft.flavor === "" ? t("modelHint") : t("modelByFlavor")}
        disabled={draft.flavor !== ""}
        data={models.map((one) => ({ value: one.model, label: t("modelOption", one) }))}
        value={[...draft.model]}
        onChange={(model) => set({ model })}
        error={problem("model")}
        renderOption={({ option, checked }) => (
          <Checkbox size="xs" checked={checked ?? false} readOnly tabIndex={-1} label={option.label} />
        )}
      />
    </SimpleGrid>
  );
}

/** The GPU models that there are, with how many are free. */
function useModels(): readonly { model: string; free: number; total: number }[] {
  const { data } = useAll("/panel");
  const { draft } = useForm();
  const found = data?.filter((item) => item.kind === draft.kind) ?? [];
  const known = found.map((item) => ({ model: item.model, free: item.free, total: item.total }));
  // What a copied job asks for may not be there any more: it stays to be seen.
  const gone = draft.model
    .filter((model) => !known.some((one) => one.model === model))
    .map((model) => ({ model, free: 0, total: 0 }));
  return [...known, ...gone];
}
