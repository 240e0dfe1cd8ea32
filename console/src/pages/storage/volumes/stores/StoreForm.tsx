import { PasswordInput, SegmentedControl, Switch, Text, Textarea, TextInput } from "@mantine/core";
import { useForm, type FormErrors } from "@mantine/form";

import { api, sent, type Schema } from "@/api/client";
import { IMAGE_NAME } from "@/api/names";
import { complete } from "@/api/complete";
import { isPrefix } from "@/pages/storage/volumes/volume";
import type { ObjectStore } from "@/pages/storage/volumes/stores/ObjectStores";
import { texts } from "@/pages/storage/volumes/texts";
import { FormDrawer } from "@/parts/FormDrawer";
import { useFormAction } from "@/parts/useFormAction";
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

/** Creates an object store, or changes the address or the secret of an existing one. */
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
  const form = useForm<Fields>({
    initialValues: store === undefined ? NEW : fieldsOf(store),
    validateInputOnChange: true,
    validate: useErrors(store),
  });
  const save = useFormAction(form, {
    run: (fields) => (store === undefined ? create(fields) : change(store.name, fields)),
    touches: ["/object-stores"],
    done: ({ name }) => t(store === undefined ? "storeAdded" : "storeSaved", { name }),
    onDone: onClose,
  });
  const { kind } = form.values;
  const isS3 = kind === "s3";
  const secretHint = store?.has_secret === true ? t("secretKept") : isS3 ? t("secretHint") : t("secretGcs");
  return (
    <FormDrawer
      opened={opened}
      title={store === undefined ? t("storeTitle") : t("storeEditTitle", { name: store.name })}
      onClose={onClose}
      {...save}
    >
      <TextInput
        label={c("name")}
        withAsterisk
        disabled={store !== undefined}
        data-autofocus={store === undefined || undefined}
        {...form.getInputProps("name")}
      />
      <div>
        <Text size="sm" fw={500} mb={4}>
          {t("kind")}
        </Text>
        <SegmentedControl
          fullWidth
          aria-label={t("kind")}
          value={kind}
          disabled={store !== undefined}
          onChange={(chosen) => form.setFieldValue("kind", chosen === "gcs" ? "gcs" : "s3")}
          data={[
            { value: "s3", label: t("s3") },
            { value: "gcs", label: t("gcs") },
          ]}
        />
      </div>
      <TextInput label={t("endpoint")} description={t("endpointHint")} {...form.getInputProps("endpoint")} />
      {isS3 && <TextInput label={t("region")} {...form.getInputProps("region")} />}
      <TextInput label={t("bucket")} withAsterisk disabled={store !== undefined} {...form.getInputProps("bucket")} />
      <TextInput
        label={t("prefix")}
        description={t("prefixHint")}
        disabled={store !== undefined}
        {...form.getInputProps("prefix")}
      />
      {isS3 && <TextInput label={t("accessKey")} autoComplete="off" {...form.getInputProps("access_key")} />}
      {isS3 ? (
        <PasswordInput
          label={t("secret")}
          description={secretHint}
          autoComplete="new-password"
          {...form.getInputProps("secret")}
        />
      ) : (
        <Textarea
          label={t("secret")}
          description={secretHint}
          autosize
          minRows={3}
          maxRows={8}
          spellCheck={false}
          {...form.getInputProps("secret")}
        />
      )}
      <Switch
        label={t("allowWrite")}
        description={t("allowWriteHint")}
        {...form.getInputProps("allow_write", { type: "checkbox" })}
      />
    </FormDrawer>
  );
}

function useErrors(store: ObjectStore | undefined): (fields: Fields) => FormErrors {
  const t = useTexts(texts);
  const c = useTexts(common);
  return ({ name, endpoint, bucket, prefix }) => ({
    name: store !== undefined || IMAGE_NAME.test(name) ? null : name === "" ? c("required") : t("nameBadStore"),
    endpoint: endpoint === "" || /^https?:\/\/[^\s/]+/.test(endpoint) ? null : t("endpointBad"),
    bucket: bucket.trim() === "" ? c("required") : null,
    prefix: isPrefix(prefix) ? null : t("prefixBad"),
  });
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

/** Changes how the bucket is reached. An empty secret keeps the stored one. */
function change(name: string, { secret, endpoint, ...fields }: Fields): Promise<ObjectStore> {
  const { region, access_key, allow_write } = fields;
  const body = {
    ...{ region, access_key, allow_write },
    endpoint: endpoint === "" ? null : endpoint,
    ...(secret === "" ? {} : { secret }),
  };
  return sent(api.PATCH("/object-stores/{store}", { params: { path: { store: name } }, body }));
}
