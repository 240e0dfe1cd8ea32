import { PasswordInput, SegmentedControl, Select, Text, TextInput } from "@mantine/core";

import { api, sent, type Schema } from "@/api/client";
import { IMAGE_NAME } from "@/api/names";
import { complete } from "@/api/complete";
import { useAll } from "@/api/useAll";
import { type Target } from "@/pages/datasets/dataset";
import { texts } from "@/pages/datasets/texts";
import { FormDrawer } from "@/parts/FormDrawer";
import { textField, useFields, type Wrong, type Wrongs } from "@/parts/useFields";
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

/** A new target; of one that there is only where the repository is and its token can change. */
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
  const form = useFields<Fields, Target>({
    start: () => (isNew ? NEW : fieldsOf(target)),
    wrong: useWrong(),
    run: (fields) => (isNew ? create(fields) : change(target, fields)),
    touches: ["/dataset-targets"],
    done: ({ name }) => t(isNew ? "targetAdded" : "targetSaved", { name }),
    onDone: onClose,
  });
  const { fields } = form;
  // What datasets are kept in cannot be moved away under them.
  const isFixed = !isNew && target.datasets > 0;
  return (
    <FormDrawer
      opened={opened}
      title={isNew ? t("targetTitle") : t("targetEditTitle", { name: target.name })}
      onClose={onClose}
      onSubmit={form.submit}
      busy={form.busy}
      problem={form.problem}
    >
      <TextInput
        label={t("targetName")}
        withAsterisk
        disabled={!isNew}
        data-autofocus={isNew || undefined}
        {...textField(form, "name")}
      />
      <Choice
        label={t("metadata")}
        value={fields.metadata}
        disabled={!isNew}
        onChange={(kind) => form.set({ metadata: kind === "git" ? "git" : "store" })}
        data={[
          { value: "store", label: t("metadataStore") },
          { value: "git", label: t("metadataGit") },
        ]}
      />
      {fields.metadata === "git" && (
        <>
          <TextInput label={t("url")} description={t("urlHint")} withAsterisk {...textField(form, "url")} />
          <TextInput label={t("branch")} disabled={!isNew} {...textField(form, "branch")} />
          <PasswordInput
            label={t("token")}
            description={target?.metadata.has_token === true ? t("tokenKept") : t("tokenHint")}
            autoComplete="new-password"
            {...textField(form, "token")}
          />
        </>
      )}
      <Choice
        label={t("storage")}
        value={fields.storage}
        disabled={isFixed}
        onChange={(kind) => form.set({ storage: kind === "object" ? "object" : "directory" })}
        data={[
          { value: "directory", label: t("storageDirectory") },
          { value: "object", label: t("storageObject") },
        ]}
      />
      <StorageFields form={form} isFixed={isFixed} />
    </FormDrawer>
  );
}

function StorageFields({
  form,
  isFixed,
}: {
  form: Pick<ReturnType<typeof useFields<Fields, Target>>, "fields" | "set" | "errorOf">;
  isFixed: boolean;
}) {
  const t = useTexts(texts);
  const stores = useAll("/object-stores").data?.map((store) => store.name) ?? [];
  if (form.fields.storage === "directory")
    return (
      <TextInput
        label={t("directory")}
        description={t("directoryHint")}
        withAsterisk
        disabled={isFixed}
        {...textField(form, "path")}
      />
    );
  return (
    <>
      <Select
        label={t("objectStore")}
        withAsterisk
        disabled={isFixed}
        data={stores}
        value={form.fields.object_store === "" ? null : form.fields.object_store}
        error={form.errorOf("object_store")}
        onChange={(store) => form.set({ object_store: store ?? "" })}
      />
      <TextInput label={t("prefix")} description={t("prefixHint")} disabled={isFixed} {...textField(form, "prefix")} />
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

function useWrong(): (fields: Fields) => Wrongs {
  const t = useTexts(texts);
  return (fields) => {
    const missing: Wrong = { text: t("needed"), isMissing: true };
    const isDirectory = fields.storage === "directory";
    return {
      name: fields.name === "" ? missing : IMAGE_NAME.test(fields.name) ? undefined : { text: t("tagBad") },
      url: fields.metadata === "git" && fields.url.trim() === "" ? missing : undefined,
      path: !isDirectory
        ? undefined
        : fields.path === ""
          ? missing
          : fields.path.startsWith("/")
            ? undefined
            : { text: t("directoryBad") },
      object_store: !isDirectory && fields.object_store === "" ? missing : undefined,
    };
  };
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
