import { Alert, MultiSelect, Select, Textarea } from "@mantine/core";
import { useForm } from "@mantine/form";
import { Info } from "lucide-react";

import { api, sent, type Schema } from "@/api/client";
import { GroupCreate } from "@/api/limits";
import { texts } from "@/pages/people/groups/texts";
import { FormDrawer } from "@/parts/FormDrawer";
import { SettingNameInput } from "@/parts/SettingNameInput";
import { useFormAction } from "@/parts/useFormAction";
import { useSettingNameCheck } from "@/parts/useSettingNameCheck";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

type GroupView = Schema<"GroupView">;

interface Values {
  readonly name: string;
  readonly description: string;
  /** Empty: no pool. */
  readonly pool: string;
  /** Users in no group, who join. */
  readonly users: string[];
}

export interface GroupFormProps {
  readonly group: GroupView | undefined;
  readonly taken: readonly string[];
  readonly pools: readonly Schema<"PoolView">[];
  /** Names of users who are in no group. */
  readonly free: readonly string[];
  readonly onClose: () => void;
}

export function GroupForm({ group, taken, pools, free, onClose }: GroupFormProps) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const isNew = group === undefined;
  const nameCheck = useSettingNameCheck(isNew, taken, t("nameTaken"));
  const form = useForm<Values>({
    initialValues: {
      name: group?.name ?? "",
      description: group?.description ?? "",
      pool: group?.pool ?? "",
      users: [],
    },
    validateInputOnChange: true,
    validate: {
      name: nameCheck,
    },
  });
  const save = useFormAction(form, {
    run: (values) => saveGroup(group, values),
    touches: ["/groups", "/users", "/pools", "/queues", "/me"],
    done: (_, { name }) => t(isNew ? "created" : "saved", { name }),
    onDone: onClose,
  });
  const lost =
    group?.pool !== null && group?.pool !== undefined && form.values.pool !== group.pool ? group.pool : undefined;
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
        maxLength={GroupCreate.description.most}
        {...form.getInputProps("description")}
      />
      <Select
        label={c("pool")}
        description={t("poolHint")}
        allowDeselect={false}
        data={[
          { value: "", label: t("noPool") },
          ...pools.filter((pool) => pool.group === null || pool.group === group?.name).map((pool) => pool.name),
        ]}
        {...form.getInputProps("pool")}
      />
      {lost !== undefined && (
        <Alert color="orange" icon={<Info size={18} />}>
          {t("poolDetach", { pool: lost })}
        </Alert>
      )}
      <MultiSelect
        label={t("usersLabel")}
        description={t("usersHint")}
        searchable
        data={[...free]}
        {...form.getInputProps("users")}
      />
    </FormDrawer>
  );
}

function saveGroup(group: GroupView | undefined, { name, description, pool, users }: Values): Promise<GroupView> {
  const wanted = pool === "" ? null : pool;
  if (group === undefined) return sent(api.POST("/groups", { body: { name, description, users, pool: wanted } }));
  const body = { description, add_users: users, remove_users: [], ...(wanted === group.pool ? {} : { pool: wanted }) };
  return sent(api.PATCH("/groups/{name}", { params: { path: { name } }, body }));
}
