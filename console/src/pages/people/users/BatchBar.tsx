/** The same for all chosen users. */
import { Button, Group, Menu, Text, Tooltip } from "@mantine/core";
import { ChevronDown, Trash2, UserX } from "lucide-react";
import { useState } from "react";

import { api, sent, type Schema } from "@/api/client";
import { useAction } from "@/api/useAction";
import { useAll } from "@/api/useAll";
import { useMe } from "@/app/session";
import { MoveUsersDialog } from "@/pages/people/groups/MoveUsersDialog";
import type { User } from "@/pages/people/users/rules";
import { useDeleteUsers } from "@/pages/people/users/useUserActions";
import { texts } from "@/pages/people/users/texts";
import { useConfirm } from "@/parts/confirm";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

export function BatchBar({ chosen, onClear }: { chosen: readonly User[]; onClear: () => void }) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const groups = useAll("/groups");
  const permissionGroups = useAll("/permission-groups");
  const [target, setTarget] = useState<string | null>();
  const remove = useDeleteUsers(onClear);
  const assign = useAction<string, Schema<"PermissionGroupView">>({
    run: (name) =>
      sent(
        api.POST("/permission-groups/{name}/users", {
          params: { path: { name } },
          body: { users: chosen.map((user) => user.name) },
        }),
      ),
    touches: ["/users", "/permission-groups"],
    optimistic: (cache, name) =>
      cache.changeItems<User>(
        "/users",
        (user) => chosen.some((one) => one.name === user.name),
        (user) => ({ ...user, permission_group: name }),
      ),
    done: (_, group) => t("batchAssigned", { n: chosen.length, group }),
    onDone: onClear,
  });
  if (chosen.length === 0) return null;
  const list = (
    label: string,
    names: readonly string[],
    choose: (name: string) => void,
    last?: readonly [string, () => void],
  ) => (
    <Menu position="bottom-start">
      <Menu.Target>
        <Button variant="default" rightSection={<ChevronDown size={14} />}>
          {label}
        </Button>
      </Menu.Target>
      <Menu.Dropdown mah={320} style={{ overflowY: "auto" }}>
        {names.map((name) => (
          <Menu.Item key={name} onClick={() => choose(name)}>
            {name}
          </Menu.Item>
        ))}
        {last !== undefined && <Menu.Item onClick={last[1]}>{last[0]}</Menu.Item>}
      </Menu.Dropdown>
    </Menu>
  );
  return (
    <Group gap="xs" mb="sm">
      <Text size="sm" fw={550} role="status">
        {c("selected", { n: chosen.length })}
      </Text>
      {list(t("batchGroup"), groups.data?.map((group) => group.name) ?? [], setTarget, [
        t("noGroup"),
        () => setTarget(null),
      ])}
      {list(t("batchPermission"), permissionGroups.data?.map((group) => group.name) ?? [], (name) =>
        assign.mutate(name),
      )}
      <DisableAll chosen={chosen} onDone={onClear} />
      <Button
        variant="default"
        color="red"
        leftSection={<Trash2 size={15} />}
        onClick={() => remove(chosen.map((user) => user.name))}
      >
        {c("delete")}
      </Button>
      <Button variant="subtle" onClick={onClear}>
        {t("clear")}
      </Button>
      {target !== undefined && groups.data !== undefined && (
        <MoveUsersDialog
          users={chosen}
          group={target}
          groups={groups.data}
          onClose={() => setTarget(undefined)}
          onMoved={onClear}
        />
      )}
    </Group>
  );
}

function DisableAll({ chosen, onDone }: { chosen: readonly User[]; onDone: () => void }) {
  const t = useTexts(texts);
  const me = useMe();
  const confirm = useConfirm();
  const names = chosen.filter((user) => !user.disabled).map((user) => user.name);
  const refusal = names.includes(me.name) ? t("batchSelf") : undefined;
  const disable = useAction<readonly string[], void>({
    run: disableAll,
    touches: ["/users"],
    done: (_, wanted) => t("batchDisabled", { n: wanted.length }),
    onDone,
  });
  function ask() {
    confirm({
      title: t("batchDisableTitle", { n: names.length }),
      text: t("batchDisableText", { names: names.join(", ") }),
      action: t("batchDisable"),
      onConfirm: () => disable.mutate(names),
    });
  }
  return (
    <Tooltip label={refusal} disabled={refusal === undefined}>
      <Button
        variant="default"
        leftSection={<UserX size={15} />}
        data-disabled={refusal !== undefined || names.length === 0}
        aria-disabled={refusal !== undefined || names.length === 0}
        aria-description={refusal}
        loading={disable.isPending}
        onClick={refusal === undefined && names.length > 0 ? ask : undefined}
      >
        {t("batchDisable")}
      </Button>
    </Tooltip>
  );
}

/** One after the other: the first refusal, which names its user, stops it; the list then shows who is disabled. */
async function disableAll(names: readonly string[]): Promise<void> {
  for (const name of names) {
    await sent(api.PATCH("/users/{name}", { params: { path: { name } }, body: { disabled: true } }));
  }
}
