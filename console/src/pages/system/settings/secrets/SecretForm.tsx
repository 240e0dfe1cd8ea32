/** A new secret, or a new value of one. The value stays in the form until it is sent, and nowhere else. */
import { PasswordInput, Select, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";

import { api, sent, type Schema } from "@/api/client";
import { SecretPut } from "@/api/limits";
import { SECRET_NAME } from "@/api/names";
import { useAll } from "@/api/useAll";
import { useIsOperator } from "@/app/session";
import { texts } from "@/pages/system/settings/secrets/texts";
import { FormDrawer } from "@/parts/FormDrawer";
import { useFormAction } from "@/parts/useFormAction";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

interface Draft {
  readonly name: string;
  readonly value: string;
  readonly group: string;
}

export function SecretForm({ replaced, onClose }: { replaced: Schema<"SecretView"> | undefined; onClose: () => void }) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const isOperator = useIsOperator();
  const groups = useAll("/groups", {}, isOperator && replaced === undefined).data ?? [];
  const form = useForm<Draft>({
    initialValues: { name: replaced?.name ?? "", value: "", group: replaced?.group ?? "" },
    validateInputOnBlur: ["name"],
    validate: {
      name: (name) => (name === "" ? c("required") : SECRET_NAME.test(name) ? null : t("badName")),
      value: (value) => (value === "" ? c("required") : null),
    },
  });
  const put = useFormAction(
    form,
    {
      run: ({ name, value, group }: Draft) =>
        sent(
          api.PUT("/secrets/{secret}", {
            params: { path: { secret: name } },
            body: { value, group: group === "" ? null : group },
          }),
        ),
      touches: ["/secrets"],
      done: ({ name }: Schema<"SecretView">) => t("stored", { name }),
      onDone: onClose,
    },
    ["secret"],
  );
  return (
    <FormDrawer
      opened
      title={replaced === undefined ? t("newSecret") : t("replace", { name: replaced.name })}
      onClose={onClose}
      {...put}
    >
      {replaced === undefined && (
        <TextInput
          label={t("name")}
          description={t("nameHint")}
          required
          data-autofocus
          autoComplete="off"
          {...form.getInputProps("name")}
        />
      )}
      <PasswordInput
        label={t("value")}
        description={t("valueHint")}
        required
        maxLength={SecretPut.value.most}
        autoComplete="off"
        data-autofocus={replaced === undefined ? undefined : true}
        {...form.getInputProps("value")}
      />
      {isOperator && replaced === undefined && (
        <Select
          label={t("owner")}
          description={t("ownerHint")}
          allowDeselect={false}
          data={[
            { value: "", label: t("mine") },
            ...groups.map(({ name }) => ({ value: name, label: t("ofGroup", { name }) })),
          ]}
          {...form.getInputProps("group")}
        />
      )}
    </FormDrawer>
  );
}
