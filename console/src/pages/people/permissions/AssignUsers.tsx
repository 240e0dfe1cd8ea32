import { MultiSelect, Text } from "@mantine/core";
import { useForm } from "@mantine/form";

import { api, sent } from "@/api/client";
import { useAll } from "@/api/useAll";
import type { PermissionGroup } from "@/pages/people/permissions/usePermissionActions";
import { texts } from "@/pages/people/permissions/texts";
import { FormDrawer } from "@/parts/FormDrawer";
import { useFormAction } from "@/parts/useFormAction";
import { useTexts } from "@/texts/texts";

export function AssignUsers({ group, onClose }: { group: PermissionGroup; onClose: () => void }) {
  const t = useTexts(texts);
  const users = useAll("/users");
  const form = useForm<{ users: string[] }>({ initialValues: { users: [] } });
  const { name } = group;
  const assign = useFormAction(form, {
    run: (body) => sent(api.POST("/permission-groups/{name}/users", { params: { path: { name } }, body })),
    touches: ["/permission-groups", "/users", "/me"],
    done: (_, chosen) => t("assigned", { n: chosen.users.length, name }),
    onDone: onClose,
  });
  const others = users.data?.filter((user) => user.permission_group !== name) ?? [];
  return (
    <FormDrawer
      opened
      title={t("assignTitle", { name })}
      onClose={onClose}
      {...assign}
      submitLabel={t("assign")}
      disabled={form.values.users.length === 0}
      problem={assign.problem ?? users.error}
    >
      <Text size="sm" c="dimmed">
        {t("assignHint")}
      </Text>
      <MultiSelect
        label={t("usersLabel")}
        searchable
        data-autofocus
        {...form.getInputProps("users")}
        data={others.map((user) => ({
          value: user.name,
          label: t("userIn", { name: user.name, group: user.permission_group }),
        }))}
      />
    </FormDrawer>
  );
}
