import { MultiSelect, Text } from "@mantine/core";
import { useState } from "react";

import { api, sent } from "@/api/client";
import type { Problem } from "@/api/problem";
import { useAction } from "@/api/useAction";
import { useAll } from "@/api/useAll";
import type { PermissionGroup } from "@/pages/people/permissions/usePermissionActions";
import { texts } from "@/pages/people/permissions/texts";
import { FormDrawer } from "@/parts/FormDrawer";
import { useTexts } from "@/texts/texts";

export function AssignUsers({ group, onClose }: { group: PermissionGroup; onClose: () => void }) {
  const t = useTexts(texts);
  const users = useAll("/users");
  const [chosen, setChosen] = useState<string[]>([]);
  const [problem, setProblem] = useState<Problem | null>(null);
  const { name } = group;
  const assign = useAction<string[], PermissionGroup>({
    run: (names) =>
      sent(api.POST("/permission-groups/{name}/users", { params: { path: { name } }, body: { users: names } })),
    touches: ["/permission-groups", "/users", "/me"],
    done: (_, names) => t("assigned", { n: names.length, name }),
    onDone: onClose,
    onProblem: setProblem,
  });
  const others = users.data?.filter((user) => user.permission_group !== name) ?? [];
  return (
    <FormDrawer
      opened
      title={t("assignTitle", { name })}
      onClose={onClose}
      submitLabel={t("assign")}
      busy={assign.isPending}
      disabled={chosen.length === 0}
      problem={problem ?? users.error}
      onSubmit={(event) => {
        event.preventDefault();
        assign.mutate(chosen);
      }}
    >
      <Text size="sm" c="dimmed">
        {t("assignHint")}
      </Text>
      <MultiSelect
        label={t("usersLabel")}
        searchable
        data-autofocus
        value={chosen}
        onChange={setChosen}
        data={others.map((user) => ({
          value: user.name,
          label: t("userIn", { name: user.name, group: user.permission_group }),
        }))}
      />
    </FormDrawer>
  );
}
