import { PasswordInput, SegmentedControl, Select, Text, TextInput } from "@mantine/core";
import { useForm, type FormErrors, type UseFormReturnType } from "@mantine/form";

import { api, sent, type Schema } from "@/api/client";
import { IMAGE_NAME } from "@/api/names";
import { complete } from "@/api/complete";
import { useAll } from "@/api/useAll";
import { type Target } from "@/pages/datasets/dataset";
import { texts } from "@/pages/datasets/texts";
import { FormDrawer } from "@/parts/FormDrawer";
import { useFormAction } from "@/parts/useFormAction";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

const NEW = {
  name: "",
  metadata: "store" as "store" | "git",
  url: "",
  branch: "main",
  token: "",
  storage: "directory" as "directory" | "object",
  path: "",
  object_store: "",
  prefix: "",
};
type Fields = typeof NEW;

/** Creates a target. Of an existing one, only the address and the token of the repository can change. */
export function TargetForm({
  target,
  opened,
  onClose,
}: {
  target: Target | undefined;
  opened: boolean;
  onClose: () => void;
}) {
  const t = useTexts(texts);
  const isNew = target === undefined;
  const form = useForm<Fields>({
    initialValues: isNew ? NEW : fieldsOf(target),
    validateInputOnChange: true,
    validate: useErrors(),
  });
  const save = useFormAction(form, {
    run: (fields) => (isNew ? create(fields) : change(target, fields)),
    touches: ["/dataset-targets"],
    done: ({ name }) => t(isNew ? "targetAdded" : "targetSaved", { name }),
    onDone: onClose,
  });
  const fields = form.values;
  // The storage of existing datasets cannot change.
  const isFixed = !isNew && target.datasets > 0;
  return (
    <FormDrawer
      opened={opened}
      title={isNew ? t("targetTitle") : t("targetEditTitle", { name: target.name })}
      onClose={onClose}
      {...save}
    >
      <TextInput
        label={t("targetName")}
        withAsterisk
        disabled={!isNew}
        data-autofocus={isNew || undefined}
        {...form.getInputProps("name")}
      />
      <Choice
        label={t("metadata")}
        value={fields.metadata}
        disabled={!isNew}
        onChange={(kind) => form.setFieldValue("metadata", kind === "git" ? "git" : "store")}
        data={[
          { value: "store", label: t("metadataStore") },
          { value: "git", label: t("metadataGit") },
        ]}
      />
      {fields.metadata === "git" && (
        <>
          <TextInput label={t("url")} description={t("urlHint")} withAsterisk {...form.getInputProps("url")} />
          <TextInput label={t("branch")} disabled={!isNew} {...form.getInputProps("branch")} />
          <PasswordInput
            label={t("token")}
            description={target?.metadata.has_token === true ? t("tokenKept") : t("tokenHint")}
            autoComplete="new-password"
            {...form.getInputProps("token")}
          />
        </>
      )}
      <Choice
        label={t("storage")}
        value={fields.storage}
        disabled={isFixed}
        onChange={(kind) => form.setFieldValue("storage", kind === "object" ? "object" : "directory")}
        data={[
          { value: "directory", label: t("storageDirectory") },
          { value: "object", label: t("storageObject") },
        ]}
      />
      <StorageFields form={form} isFixed={isFixed} />
    </FormDrawer>
  );
}

function StorageFields({ form, isFixed }: { form: UseFormReturnType<Fields>; isFixed: boolean }) {
  const t = useTexts(texts);
  const stores = useAll("/object-stores").data?.map((store) => store.name) ?? [];
  if (form.values.storage === "directory")
    return (
      <TextInput
        label={t("directory")}
        description={t("directoryHint")}
        withAsterisk
        disabled={isFixed}
        {...form.getInputProps("path")}
      />
    );
  return (
    <>
      <Select
        label={t("objectStore")}
        withAsterisk
        disabled={isFixed}
        data={stores}
        {...form.getInputProps("object_store")}
        value={form.values.object_store === "" ? null : form.values.object_store}
        onChange={(store) => form.setFieldValue("object_store", store ?? "")}
      />
      <TextInput
        label={t("prefix")}
        description={t("prefixHint")}
        disabled={isFixed}
        {...form.getInputProps("prefix")}
      />
    </>
  );
}

function Choice({
  label,
  ...control
}: {
  label: string;
  value: string;
  disabled: boolean;
  onChange: (value: string) => void;
  data: { value: string; label: string }[];
}) {
  return (
    <div>
      <Text size="sm" fw={500} mb={4}>
        {label}
      </Text>
      <SegmentedControl fullWidth aria-label={label} {...control} />
    </div>
  );
}

function useErrors(): (fields: Fields) => FormErrors {
  const t = useTexts(texts);
  const c = useTexts(common);
  return ({ name, metadata, url, storage, path, object_store: store }) => ({
    name: name === "" ? c("required") : IMAGE_NAME.test(name) ? null : t("targetNameBad"),
    url: metadata === "git" && url.trim() === "" ? c("required") : null,
    path: storage !== "directory" || path.startsWith("/") ? null : path === "" ? c("required") : t("directoryBad"),
    object_store: storage === "object" && store === "" ? c("required") : null,
  });
}

function fieldsOf({ name, metadata, storage }: Target): Fields {
  return {
    ...NEW,
    name,
    metadata: metadata.kind,
    url: metadata.url ?? "",
    branch: metadata.branch ?? "main",
    storage: storage.kind,
    path: storage.path ?? "",
    object_store: storage.object_store ?? "",
    prefix: storage.prefix ?? "",
  };
}

function storageOf(fields: Fields): Schema<"DatasetTargetCreate">["storage"] {
  return fields.storage === "directory"
    ? { kind: "directory", path: fields.path.trim() }
    : { kind: "object", object_store: fields.object_store, prefix: fields.prefix.trim() };
}

function create(fields: Fields): Promise<Target> {
  const metadata =
    fields.metadata === "store"
      ? ({ kind: "store" } as const)
      : ({ kind: "git", url: fields.url.trim(), branch: fields.branch.trim(), token: fields.token } as const);
  const body = complete<Schema<"DatasetTargetCreate">>({ name: fields.name, metadata, storage: storageOf(fields) });
  return sent(api.POST("/dataset-targets", { body }));
}

/** An empty token means the one that is kept. */
function change(target: Target, fields: Fields): Promise<Target> {
  const body = {
    ...(fields.metadata === "git" && fields.url.trim() !== target.metadata.url ? { url: fields.url.trim() } : {}),
    ...(fields.token === "" ? {} : { token: fields.token }),
    ...(target.datasets > 0 ? {} : { storage: storageOf(fields) }),
  };
  return sent(api.PATCH("/dataset-targets/{target}", { params: { path: { target: target.name } }, body }));
}
