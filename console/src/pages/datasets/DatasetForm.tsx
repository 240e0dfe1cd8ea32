import { Select, Text, Textarea, TextInput } from "@mantine/core";

import { api, sent, type Schema } from "@/api/client";
import { DATASET_NAME } from "@/api/names";
import { complete } from "@/api/complete";
import { useAll } from "@/api/useAll";
import { useWhyNotCreate, type Dataset } from "@/pages/datasets/dataset";
import { texts } from "@/pages/datasets/texts";
import { FormDrawer } from "@/parts/FormDrawer";
import { textField, useFields, type Wrongs } from "@/parts/useFields";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

interface Fields {
  readonly name: string;
  readonly target: string;
  readonly description: string;
}

/** A new dataset, or another description for one that there is. */
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
  const form = useFields<Fields, Dataset>({
    start: () => ({
      name: dataset?.name ?? "",
      target: dataset?.target ?? "default",
      description: dataset?.description ?? "",
    }),
    wrong: useWrong(dataset),
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
      onSubmit={form.submit}
      submitLabel={isNew ? c("create") : c("save")}
      busy={form.busy}
      disabled={isNew && whyNot !== undefined}
      problem={form.problem}
    >
      {isNew && whyNot !== undefined && <Text size="sm">{whyNot}</Text>}
      <TextInput
        label={c("name")}
        description={t("nameHint")}
        withAsterisk
        disabled={!isNew}
        data-autofocus={isNew || undefined}
        {...textField(form, "name")}
      />
      <Textarea
        label={c("description")}
        autosize
        minRows={2}
        maxLength={1000}
        data-autofocus={!isNew || undefined}
        {...textField(form, "description")}
      />
      {isNew && (
        <Select
          label={t("target")}
          description={t("targetHint")}
          data={targets}
          value={form.fields.target}
          error={form.errorOf("target")}
          allowDeselect={false}
          onChange={(target) => form.set({ target: target ?? "default" })}
        />
      )}
    </FormDrawer>
  );
}

function useWrong(dataset: Dataset | undefined): (fields: Fields) => Wrongs {
  const t = useTexts(texts);
  const datasets = useAll("/datasets").data ?? [];
  return ({ name }) => {
    if (dataset !== undefined) return {};
    if (name === "") return { name: { text: t("needed"), isMissing: true } };
    if (!DATASET_NAME.test(name))
      return { name: { text: t("nameBad", { n: name.length }), isMissing: name.length < 2 } };
    return datasets.some((one) => one.mine && one.name === name) ? { name: { text: t("nameTaken") } } : {};
  };
}

function create(fields: Fields): Promise<Dataset> {
  return sent(api.POST("/datasets", { body: complete<Schema<"DatasetCreate">>({ ...fields }) }));
}

function change(dataset: string, { description }: Fields): Promise<Dataset> {
  return sent(api.PATCH("/datasets/{dataset}", { params: { path: { dataset } }, body: { description } }));
}
