import { Checkbox, Stack, Textarea } from "@mantine/core";
import { useForm } from "@mantine/form";

import { api, sent } from "@/api/client";
import { PermissionGroupCreate } from "@/api/limits";
import { useOptions } from "@/api/options";
import type { PermissionGroup } from "@/pages/people/permissions/usePermissionActions";
import { functions, meanings, texts } from "@/pages/people/permissions/texts";
import { FormDrawer } from "@/parts/FormDrawer";
import { SettingNameInput } from "@/parts/SettingNameInput";
import { useFormAction } from "@/parts/useFormAction";
import { useSettingNameCheck } from "@/parts/useSettingNameCheck";
import { common } from "@/texts/common";
import { useTextOr, useTexts } from "@/texts/texts";

interface Values {
  readonly name: string;
  readonly description: string;
  readonly functions: string[];
}

export function PermissionForm({
  group,
  taken,
  onClose,
}: {
  group: PermissionGroup | undefined;
  taken: readonly string[];
  onClose: () => void;
}) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const options = useOptions();
  const f = useTextOr(functions);
  const m = useTextOr(meanings);
  const isNew = group === undefined;
  const nameCheck = useSettingNameCheck(isNew, taken, t("nameTaken"));
  const form = useForm<Values>({
    initialValues: {
      name: group?.name ?? "",
      description: group?.description ?? "",
      functions: [...(group?.functions ?? [])],
    },
    validateInputOnChange: true,
    validate: {
      name: nameCheck,
    },
  });
  const save = useFormAction(form, {
    run: (values) => {
      const body = {
        description: values.description,
        functions: options.functions.map(({ name }) => name).filter((name) => values.functions.includes(name)),
      };
      return sent(
        isNew
          ? api.POST("/permission-groups", { body: { ...body, name: values.name } })
          : api.PATCH("/permission-groups/{name}", { params: { path: { name: values.name } }, body }),
      );
    },
    touches: ["/permission-groups", "/me"],
    done: (_, { name }) => t(isNew ? "created" : "saved", { name }),
    onDone: onClose,
  });
  return (
    <FormDrawer
      opened
      title={isNew ? t("createTitle") : t("editTitle", { name: group.name })}
      onClose={onClose}
      {...save}
      submitLabel={isNew ? c("create") : c("save")}
    >
      {isNew && <SettingNameInput description={t("nameHint")} {...form.getInputProps("name")} />}
      <Textarea
        label={c("description")}
        autosize
        minRows={2}
        maxLength={PermissionGroupCreate.description.most}
        {...form.getInputProps("description")}
      />
      <Checkbox.Group label={t("functions")} description={t("functionsHint")} {...form.getInputProps("functions")}>
        <Stack gap="xs" mt="xs">
          {options.functions.map(({ name, description }) => (
            <Checkbox key={name} value={name} label={f(name)} description={m(name, description)} />
          ))}
        </Stack>
      </Checkbox.Group>
    </FormDrawer>
  );
}
