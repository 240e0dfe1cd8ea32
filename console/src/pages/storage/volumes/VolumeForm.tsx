/** Creates a volume: explains its type, and compares its size with the quota. */
import { Radio, Select, Stack, Text, Textarea, TextInput } from "@mantine/core";
import { useForm, type FormErrors } from "@mantine/form";
import type { ReactNode } from "react";

import { $api, api, sent, type Schema } from "@/api/client";
import { VolumeCreate } from "@/api/limits";
import { VOLUME_NAME } from "@/api/names";
import { useAll } from "@/api/useAll";
import { complete } from "@/api/complete";
import { QuotaLine } from "@/pages/storage/volumes/QuotaLine";
import { sizeError } from "@/pages/storage/volumes/size";
import { isPrefix, KEPT_TYPES, useWhyNotCreate, type KeptType } from "@/pages/storage/volumes/volume";
import { texts } from "@/pages/storage/volumes/texts";
import { FormDrawer } from "@/parts/FormDrawer";
import { HintedGroup } from "@/parts/HintedGroup";
import { OptionCard } from "@/parts/OptionCard";
import { useFormAction } from "@/parts/useFormAction";
import { common, volumeTypes } from "@/texts/common";
import { useFormat } from "@/texts/format";
import { parseSize } from "@/texts/sizes";
import { useTexts } from "@/texts/texts";

interface Fields {
  readonly name: string;
  readonly type: KeptType;
  readonly size: string;
  readonly cluster: string;
  readonly object_store: string;
  readonly prefix: string;
  readonly description: string;
}

const NEW: Fields = {
  name: "",
  type: "filesystem",
  size: "",
  cluster: "",
  object_store: "",
  prefix: "",
  description: "",
};

export function VolumeForm({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const stores = useAll("/object-stores", {}, opened).data;
  const quota = $api.useQuery("get", "/me/quota", {}, { enabled: opened }).data?.volumes;
  const whyNot = useWhyNotCreate();
  const form = useForm<Fields>({ initialValues: NEW, validateInputOnChange: true, validate: useErrors(quota) });
  const save = useFormAction(form, {
    run: (fields) => sent(api.POST("/volumes", { body: bodyOf(fields) })),
    touches: ["/volumes", "/me/quota", "/quotas"],
    done: ({ name }) => t("created", { name }),
    onDone: onClose,
  });
  const fields = form.values;
  const held = quota?.[fields.type];
  return (
    <FormDrawer
      opened={opened}
      title={t("createTitle")}
      onClose={onClose}
      {...save}
      submitLabel={c("create")}
      disabled={whyNot !== undefined}
    >
      {whyNot !== undefined && <Text size="sm">{whyNot}</Text>}
      <TextInput
        label={c("name")}
        description={t("nameHint")}
        withAsterisk
        data-autofocus
        {...form.getInputProps("name")}
      />
      <TypeField
        value={fields.type}
        onChange={(type) => form.setFieldValue("type", type)}
        hasStores={stores?.length !== 0}
      />
      {fields.type === "object" ? (
        <>
          <Select
            label={t("objectStore")}
            description={t("objectStoreHint")}
            withAsterisk
            data={(stores ?? []).map((store) => ({
              value: store.name,
              label: t(store.allow_write ? "storeWritable" : "storeReadOnly", {
                name: store.name,
                bucket: store.bucket,
              }),
            }))}
            {...form.getInputProps("object_store")}
            value={fields.object_store === "" ? null : fields.object_store}
            onChange={(store) => form.setFieldValue("object_store", store ?? "")}
          />
          <TextInput label={t("prefix")} description={t("prefixHint")} {...form.getInputProps("prefix")} />
        </>
      ) : (
        <>
          <HintedGroup
            label={t("size")}
            hint={
              held !== undefined && <QuotaLine type={fields.type} held={held} asked={parseSize(fields.size) ?? 0} />
            }
          >
            <TextInput
              label={t("size")}
              description={t("sizeHint")}
              withAsterisk
              placeholder="100GiB"
              {...form.getInputProps("size")}
            />
          </HintedGroup>
        </>
      )}
      <ClusterField
        value={fields.cluster}
        onChange={(cluster) => form.setFieldValue("cluster", cluster)}
        error={form.errors.cluster}
      />
      <Textarea
        label={c("description")}
        description={t("descriptionHint")}
        autosize
        maxRows={6}
        maxLength={VolumeCreate.description.most}
        {...form.getInputProps("description")}
      />
    </FormDrawer>
  );
}

function TypeField({
  value,
  onChange,
  hasStores,
}: {
  value: KeptType;
  onChange: (type: KeptType) => void;
  hasStores: boolean;
}) {
  const t = useTexts(texts);
  const type = useTexts(volumeTypes);
  return (
    <Radio.Group
      label={t("type")}
      value={value}
      onChange={(chosen) => onChange(KEPT_TYPES.find((one) => one === chosen) ?? value)}
    >
      <Stack gap="xs" mt={4}>
        {KEPT_TYPES.map((one) => {
          const isMissing = one === "object" && !hasStores;
          return (
            <OptionCard key={one} value={one} title={type(one)} disabled={isMissing}>
              <Text size="sm" c="dimmed">
                {isMissing ? t("noStores") : t(`${one}Is`)}
              </Text>
            </OptionCard>
          );
        })}
      </Stack>
    </Radio.Group>
  );
}

/** Shown only if there are several clusters. */
function ClusterField({
  value,
  onChange,
  error,
}: {
  value: string;
  onChange: (cluster: string) => void;
  error: ReactNode;
}) {
  const t = useTexts(texts);
  const clusters = useAll("/clusters").data?.map((cluster) => cluster.name) ?? [];
  if (clusters.length < 2) return null;
  return (
    <Select
      label={t("cluster")}
      description={t("clusterHint")}
      data={clusters}
      value={value === "" ? (clusters[0] ?? null) : value}
      error={error}
      allowDeselect={false}
      onChange={(cluster) => onChange(cluster ?? "")}
    />
  );
}

function useErrors(quota: Readonly<Record<string, Schema<"HeldView">>> | undefined): (fields: Fields) => FormErrors {
  const t = useTexts(texts);
  const c = useTexts(common);
  const { bytes } = useFormat();
  const volumes = useAll("/volumes").data ?? [];
  return ({ name, type, size, object_store: store, prefix }) => {
    const errors: FormErrors = {};
    if (name === "") errors.name = c("required");
    else if (!VOLUME_NAME.test(name)) errors.name = t("nameBad", { n: name.length });
    else if (volumes.some((one) => one.mine && one.name === name)) errors.name = t("nameTaken");
    if (type !== "object") errors.size = sizeError(size, { t, bytes, held: quota?.[type], before: 0 });
    else {
      if (store === "") errors.object_store = c("required");
      if (!isPrefix(prefix)) errors.prefix = t("prefixBad");
    }
    return errors;
  };
}

function bodyOf({ name, type, size, cluster, object_store, prefix, description }: Fields): Schema<"VolumeCreate"> {
  const place = { ...(cluster === "" ? {} : { cluster }), description: description.trim() };
  return complete<Schema<"VolumeCreate">>(
    type === "object"
      ? { name, type, object_store, prefix: prefix.trim(), ...place }
      : { name, type, size: size.trim(), ...place },
  );
}
