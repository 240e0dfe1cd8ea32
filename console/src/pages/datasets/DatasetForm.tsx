import { Select, Text, Textarea, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";

import { api, sent, type Schema } from "@/api/client";
import { DatasetCreate } from "@/api/limits";
import { DATASET_NAME } from "@/api/names";
import { complete } from "@/api/complete";
import { useAll } from "@/api/useAll";
import { useWhyNotCreate, type Dataset } from "@/pages/datasets/dataset";
import { texts } from "@/pages/datasets/texts";
import { FormDrawer } from "@/parts/FormDrawer";
import { useFormAction } from "@/parts/useFormAction";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

interface Fields {
  readonly name: string;
  readonly target: string;
  readonly description: string;
}

/** Creates a dataset, or changes the description of an existing one. */
export function DatasetForm({
  dataset,
  opened,
  onClose,
  onCreated,
}: {
  dataset: Dataset | undefined;
  opened: boolean;
  onClose: () => void;
  onCreated?: (dataset: Dataset) => void;
}) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const targets = useAll("/dataset-targets", {}, opened && dataset === undefined).data?.map((one) => one.name) ?? [];
  const whyNot = useWhyNotCreate();
  const isNew = dataset === undefined;
  const nameError = useNameError();
  const form = useForm<Fields>({
    initialValues: {
      name: dataset?.name ?? "",
      target: dataset?.target ?? "default",
      description: dataset?.description ?? "",
    },
    validateInputOnChange: true,
    validate: { name: (name) => (isNew ? nameError(name) : null) },
  });
  const save = useFormAction(form, {
    run: (fields) => (dataset === undefined ? create(fields) : change(dataset.id, fields)),
    touches: ["/datasets"],
    done: ({ name }) => t(isNew ? "created" : "saved", { name }),
    onDone: (made) => {
      onClose();
      if (isNew) onCreated?.(made);
    },
  });
  return (
    <FormDrawer
      opened={opened}
      title={isNew ? t("createTitle") : t("editTitle", { name: dataset.name })}
      onClose={onClose}
      {...save}
      submitLabel={isNew ? c("create") : c("save")}
      disabled={isNew && whyNot !== undefined}
    >
      {isNew && whyNot !== undefined && <Text size="sm">{whyNot}</Text>}
      <TextInput
        label={c("name")}
        description={t("nameHint")}
        withAsterisk
        disabled={!isNew}
        data-autofocus={isNew || undefined}
        {...form.getInputProps("name")}
      />
      <Textarea
        label={c("description")}
        autosize
        minRows={2}
        maxLength={DatasetCreate.description.most}
        data-autofocus={!isNew || undefined}
        {...form.getInputProps("description")}
      />
      {isNew && (
        <Select
          label={t("target")}
          description={t("targetHint")}
          data={targets}
          allowDeselect={false}
          {...form.getInputProps("target")}
        />
      )}
    </FormDrawer>
  );
}

function useNameError(): (name: string) => string | null {
  const t = useTexts(texts);
  const c = useTexts(common);
  const datasets = useAll("/datasets").data ?? [];
  return (name) => {
    if (name === "") return c("required");
    if (!DATASET_NAME.test(name)) return t("nameBad", { n: name.length });
    return datasets.some((one) => one.mine && one.name === name) ? t("nameTaken") : null;
  };
}

function create(fields: Fields): Promise<Dataset> {
  return sent(api.POST("/datasets", { body: complete<Schema<"DatasetCreate">>({ ...fields }) }));
}

function change(dataset: string, { description }: Fields): Promise<Dataset> {
  return sent(api.PATCH("/datasets/{dataset}", { params: { path: { dataset } }, body: { description } }));
}
