import { Textarea } from "@mantine/core";
import { useForm } from "@mantine/form";

import { api, sent, type Schema } from "@/api/client";
import { PoolCreate } from "@/api/limits";
import type { Gpu } from "@/pages/fleet/pools/fleet";
import { GpuPicker } from "@/pages/fleet/pools/GpuPicker";
import { texts } from "@/pages/fleet/pools/texts";
import { FormDrawer } from "@/parts/FormDrawer";
import { SettingNameInput } from "@/parts/SettingNameInput";
import { useFormAction } from "@/parts/useFormAction";
import { useSettingNameCheck } from "@/parts/useSettingNameCheck";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

interface Values {
  readonly name: string;
  readonly description: string;
  /** Ids of the GPUs of a new pool. */
  readonly gpus: readonly string[];
}

/** Creates a pool, or changes the description of an existing one. */
export function PoolForm({
  pool,
  taken,
  gpus,
  onClose,
}: {
  pool: Schema<"PoolView"> | undefined;
  taken: readonly string[];
  gpus: readonly Gpu[];
  onClose: () => void;
}) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const isNew = pool === undefined;
  const nameCheck = useSettingNameCheck(isNew, taken, t("nameTaken"));
  const form = useForm<Values>({
    initialValues: { name: pool?.name ?? "", description: pool?.description ?? "", gpus: [] },
    validateInputOnChange: true,
    validate: {
      name: nameCheck,
    },
  });
  const save = useFormAction(form, {
    run: ({ name, description, gpus: chosen }) =>
      sent(
        isNew
          ? api.POST("/pools", { body: { name, description, gpus: [...chosen] } })
          : api.PATCH("/pools/{name}", { params: { path: { name } }, body: { description } }),
      ),
    touches: ["/pools", "/gpus", "/queues"],
    done: (_, { name }) => t(isNew ? "created" : "saved", { name }),
    onDone: onClose,
  });
  return (
    <FormDrawer
      opened
      title={isNew ? t("createTitle") : t("editTitle", { name: pool.name })}
      onClose={onClose}
      {...save}
      submitLabel={isNew ? c("create") : c("save")}
    >
      {isNew && <SettingNameInput description={t("nameHint")} {...form.getInputProps("name")} />}
      <Textarea
        label={c("description")}
        autosize
        minRows={2}
        maxLength={PoolCreate.description.most}
        {...form.getInputProps("description")}
      />
      {isNew && (
        <GpuPicker
          gpus={gpus}
          chosen={form.values.gpus}
          onChange={(ids) => form.setFieldValue("gpus", ids)}
          error={form.errors.gpus}
        />
      )}
    </FormDrawer>
  );
}
