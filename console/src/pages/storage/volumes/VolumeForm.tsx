/** A new volume: what its type means, its size against the quota, or the bucket that it shows. */
import { Radio, Select, Stack, Text, Textarea, TextInput } from "@mantine/core";

import { $api, api, sent, type Schema } from "@/api/client";
import { VOLUME_NAME } from "@/api/names";
import { useAll } from "@/api/useAll";
import { complete } from "@/api/complete";
import { QuotaLine } from "@/pages/storage/volumes/QuotaLine";
import { checkSize } from "@/pages/storage/volumes/size";
import { KEPT_TYPES, useWhyNotCreate, type KeptType, type Volume } from "@/pages/storage/volumes/volume";
import { texts } from "@/pages/storage/volumes/texts";
import { FormDrawer } from "@/parts/FormDrawer";
import { OptionCard } from "@/parts/OptionCard";
import { textField, useFields, type Wrong, type Wrongs } from "@/parts/useFields";
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
  const form = useFields<Fields, Volume>({
    start: () => NEW,
    wrong: useWrong(quota),
    run: (fields) => sent(api.POST("/volumes", { body: bodyOf(fields) })),
    touches: ["/volumes", "/me/quota", "/quotas"],
    done: ({ name }) => t("created", { name }),
    onDone: onClose,
  });
  const { fields, set, errorOf } = form;
  const held = quota?.[fields.type];
  return (
    <FormDrawer
      opened={opened}
      title={t("createTitle")}
      onClose={onClose}
      onSubmit={form.submit}
      submitLabel={c("create")}
      busy={form.busy}
      disabled={whyNot !== undefined}
      problem={form.problem}
    >
      {whyNot !== undefined && <Text size="sm">{whyNot}</Text>}
      <TextInput
        label={c("name")}
        description={t("nameHint")}
        withAsterisk
        data-autofocus
        {...textField(form, "name")}
      />
      <TypeField value={fields.type} onChange={(type) => set({ type })} hasStores={stores?.length !== 0} />
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
            value={fields.object_store === "" ? null : fields.object_store}
            error={errorOf("object_store")}
            onChange={(store) => set({ object_store: store ?? "" })}
          />
          <TextInput label={t("prefix")} description={t("prefixHint")} {...textField(form, "prefix")} />
        </>
      ) : (
        <>
          <TextInput
            label={t("size")}
            description={t("sizeHint")}
            withAsterisk
            placeholder="100GiB"
            {...textField(form, "size")}
          />
          {held !== undefined && <QuotaLine type={fields.type} held={held} asked={parseSize(fields.size) ?? 0} />}
        </>
      )}
      <ClusterField value={fields.cluster} onChange={(cluster) => set({ cluster })} error={errorOf("cluster")} />
      <Textarea
        label={c("description")}
        description={t("descriptionHint")}
        autosize
        maxRows={6}
        maxLength={500}
        {...textField(form, "description")}
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

/** Only worth a question where there is a choice. */
function ClusterField({
  value,
  onChange,
  error,
}: {
  value: string;
  onChange: (cluster: string) => void;
  error: string | undefined;
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

function useWrong(quota: Readonly<Record<string, Schema<"HeldView">>> | undefined): (fields: Fields) => Wrongs {
  const t = useTexts(texts);
  const { bytes } = useFormat();
  const volumes = useAll("/volumes").data ?? [];
  return ({ name, type, size, object_store: store, prefix }) => {
    const wrong: Record<string, Wrong | undefined> = {};
    if (name === "") wrong.name = { text: t("needed"), isMissing: true };
    else if (!VOLUME_NAME.test(name))
      wrong.name = { text: t("nameBad", { n: name.length }), isMissing: name.length < 2 };
    else if (volumes.some((one) => one.mine && one.name === name)) wrong.name = { text: t("nameTaken") };
    if (type !== "object") wrong.size = checkSize(size, { t, bytes, held: quota?.[type], before: 0 });
    else {
      if (store === "") wrong.object_store = { text: t("needed"), isMissing: true };
      if (/(^\/)|(^|\/)\.\.(\/|$)/.test(prefix.trim())) wrong.prefix = { text: t("prefixBad") };
    }
    return wrong;
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
