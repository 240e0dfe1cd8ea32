import { PasswordInput, SegmentedControl, Switch, Text, Textarea, TextInput } from "@mantine/core";

import { api, sent, type Schema } from "@/api/client";
import { IMAGE_NAME } from "@/api/names";
import { complete } from "@/api/complete";
import type { ObjectStore } from "@/pages/storage/volumes/ObjectStores";
import { texts } from "@/pages/storage/volumes/texts";
import { FormDrawer } from "@/parts/FormDrawer";
import { textField, useFields, type Wrong, type Wrongs } from "@/parts/useFields";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

const NEW = {
  name: "",
  kind: "s3" as ObjectStore["kind"],
  endpoint: "",
  region: "",
  bucket: "",
  prefix: "",
  access_key: "",
  secret: "",
  allow_write: false,
};
type Fields = typeof NEW;

/** A new object store, or another address or secret for one that there is. */
export function StoreForm({
  store,
  opened,
  onClose,
}: {
  store: ObjectStore | undefined;
  opened: boolean;
  onClose: () => void;
}) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const form = useFields<Fields, ObjectStore>({
    start: () => (store === undefined ? NEW : fieldsOf(store)),
    wrong: useWrong(store),
    run: (fields) => (store === undefined ? create(fields) : change(store.name, fields)),
    touches: ["/object-stores"],
    done: ({ name }) => t(store === undefined ? "storeAdded" : "storeSaved", { name }),
    onDone: onClose,
  });
  const { fields, set } = form;
  const isS3 = fields.kind === "s3";
  const secretHint = store?.has_secret === true ? t("secretKept") : isS3 ? t("secretHint") : t("secretGcs");
  return (
    <FormDrawer
      opened={opened}
      title={store === undefined ? t("storeTitle") : t("storeEditTitle", { name: store.name })}
      onClose={onClose}
      onSubmit={form.submit}
      busy={form.busy}
      problem={form.problem}
    >
      <TextInput
        label={c("name")}
        withAsterisk
        disabled={store !== undefined}
        data-autofocus={store === undefined || undefined}
        {...textField(form, "name")}
      />
      <div>
        <Text size="sm" fw={500} mb={4}>
          {t("kind")}
        </Text>
        <SegmentedControl
          fullWidth
          aria-label={t("kind")}
          value={fields.kind}
          disabled={store !== undefined}
          onChange={(kind) => set({ kind: kind === "gcs" ? "gcs" : "s3" })}
          data={[
            { value: "s3", label: t("s3") },
            { value: "gcs", label: t("gcs") },
          ]}
        />
      </div>
      <TextInput label={t("endpoint")} description={t("endpointHint")} {...textField(form, "endpoint")} />
      {isS3 && <TextInput label={t("region")} {...textField(form, "region")} />}
      <TextInput label={t("bucket")} withAsterisk disabled={store !== undefined} {...textField(form, "bucket")} />
      <TextInput
        label={t("prefix")}
        description={t("prefixHint")}
        disabled={store !== undefined}
        {...textField(form, "prefix")}
      />
      {isS3 && <TextInput label={t("accessKey")} autoComplete="off" {...textField(form, "access_key")} />}
      {isS3 ? (
        <PasswordInput
          label={t("secret")}
          description={secretHint}
          autoComplete="new-password"
          {...textField(form, "secret")}
        />
      ) : (
        <Textarea
          label={t("secret")}
          description={secretHint}
          autosize
          minRows={3}
          maxRows={8}
          spellCheck={false}
          {...textField(form, "secret")}
        />
      )}
      <Switch
        label={t("allowWrite")}
        description={t("allowWriteHint")}
        checked={fields.allow_write}
        onChange={(event) => set({ allow_write: event.currentTarget.checked })}
      />
    </FormDrawer>
  );
}

function useWrong(store: ObjectStore | undefined): (fields: Fields) => Wrongs {
  const t = useTexts(texts);
  return ({ name, endpoint, bucket, prefix }) => {
    const missing: Wrong = { text: t("needed"), isMissing: true };
    return {
      name:
        store !== undefined || IMAGE_NAME.test(name) ? undefined : name === "" ? missing : { text: t("nameBadStore") },
      endpoint: endpoint === "" || /^https?:\/\/[^\s/]+/.test(endpoint) ? undefined : { text: t("endpointBad") },
      bucket: bucket.trim() === "" ? missing : undefined,
      prefix: /(^\/)|(^|\/)\.\.(\/|$)/.test(prefix.trim()) ? { text: t("prefixBad") } : undefined,
    };
  };
}

function fieldsOf(store: ObjectStore): Fields {
  const { name, kind, bucket, allow_write } = store;
  return {
    ...NEW,
    name,
    kind,
    bucket,
    allow_write,
    endpoint: store.endpoint ?? "",
    region: store.region ?? "",
    prefix: store.prefix ?? "",
    access_key: store.access_key ?? "",
  };
}

function create({ secret, endpoint, ...fields }: Fields): Promise<ObjectStore> {
  const given = { ...fields, ...(endpoint === "" ? {} : { endpoint }), ...(secret === "" ? {} : { secret }) };
  return sent(api.POST("/object-stores", { body: complete<Schema<"ObjectStoreCreate">>(given) }));
}

/** How the same bucket is reached; an empty secret means the one that is kept. */
function change(name: string, { secret, endpoint, ...fields }: Fields): Promise<ObjectStore> {
  const { region, access_key, allow_write } = fields;
  const body = {
    ...{ region, access_key, allow_write },
    endpoint: endpoint === "" ? null : endpoint,
    ...(secret === "" ? {} : { secret }),
  };
  return sent(api.PATCH("/object-stores/{store}", { params: { path: { store: name } }, body }));
}
