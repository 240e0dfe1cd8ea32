/** Logins to registries. A secret only ever goes in; what is listed is whose it is and where it is used. */
import { ActionIcon, Badge, Button, Group, Tooltip } from "@mantine/core";
import { KeyRound, Plus, RefreshCw, Trash2 } from "lucide-react";

import { api, sent, type Schema } from "@/api/client";
import { useAction } from "@/api/useAction";
import { useAll } from "@/api/useAll";
import { useMay, useMe } from "@/app/session";
import { LoginDrawer } from "@/pages/images/LoginDrawer";
import { words } from "@/pages/images/words";
import { useConfirm } from "@/parts/confirm";
import { DataTable, type Column } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { Moment } from "@/parts/Moment";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { common } from "@/words/common";
import { useWords } from "@/words/words";

export type Login = Schema<"corral__server__schemas__images__LoginView">;

export function LoginList({ open, onOpen }: { open: string; onOpen: (key: string) => void }) {
  const t = useWords(words);
  const logins = useAll("/registry-logins");
  const remove = useRemove();
  const columns = useColumns();
  const opened = logins.data?.find((login) => keyOf(login) === open);
  return (
    <Panel title={t("logins")} tools={<AddButton onClick={() => onOpen("new")} />}>
      {logins.error !== null && <ProblemNote error={logins.error} onRetry={() => void logins.refetch()} />}
      {logins.error === null && (
        <DataTable
          label={t("logins")}
          rows={logins.data}
          columns={columns}
          rowKey={keyOf}
          actions={(login) => (
            <RowActions login={login} onReplace={() => onOpen(keyOf(login))} onRemove={() => remove(login)} />
          )}
          empty={
            <EmptyState icon={KeyRound} title={t("emptyLogins")} hint={t("emptyLoginsHint")}>
              <AddButton onClick={() => onOpen("new")} />
            </EmptyState>
          }
        />
      )}
      <LoginDrawer
        key={open}
        login={opened}
        opened={open === "new" || opened !== undefined}
        onClose={() => onOpen("")}
      />
    </Panel>
  );
}

function keyOf({ name, platform }: Login): string {
  return platform ? `platform/${name}` : name;
}

function AddButton({ onClick }: { onClick: () => void }) {
  const t = useWords(words);
  const me = useMe();
  const may = useMay("images");
  return (
    <Tooltip label={t("notAllowed", { group: me.permission_group })} disabled={may}>
      <Button
        leftSection={<Plus size={15} />}
        aria-disabled={!may}
        data-disabled={may ? undefined : true}
        onClick={() => may && onClick()}
      >
        {t("addLogin")}
      </Button>
    </Tooltip>
  );
}

function useColumns(): readonly Column<Login>[] {
  const t = useWords(words);
  const c = useWords(common);
  return [
    {
      key: "name",
      title: c("name"),
      sort: (login) => login.name,
      render: (login) => (
        <Group gap={6}>
          {login.name}
          {login.platform && (
            <Badge variant="light" color="teal" tt="none" fw={500}>
              {t("platform")}
            </Badge>
          )}
        </Group>
      ),
    },
    { key: "registry", title: t("registry"), sort: (login) => login.registry, render: (login) => login.registry },
    { key: "username", title: t("username"), sort: (login) => login.username, render: (login) => login.username },
    {
      key: "created",
      title: c("created"),
      wide: true,
      sort: (login) => login.created_at,
      render: (login) => <Moment at={login.created_at} />,
    },
  ];
}

function RowActions({ login, onReplace, onRemove }: { login: Login; onReplace: () => void; onRemove: () => void }) {
  const t = useWords(words);
  const replace = t("replaceName", { name: login.name });
  const remove = t("removeName", { name: login.name });
  return (
    <Group gap={2} wrap="nowrap">
      <Tooltip label={replace}>
        <ActionIcon variant="subtle" color="gray" aria-label={replace} onClick={onReplace}>
          <RefreshCw size={15} />
        </ActionIcon>
      </Tooltip>
      <Tooltip label={remove}>
        <ActionIcon variant="subtle" color="red" aria-label={remove} onClick={onRemove}>
          <Trash2 size={15} />
        </ActionIcon>
      </Tooltip>
    </Group>
  );
}

function useRemove(): (login: Login) => void {
  const t = useWords(words);
  const confirm = useConfirm();
  const remove = useAction<Login, unknown>({
    run: ({ name, platform }) =>
      sent(api.DELETE("/registry-logins/{login}", { params: { path: { login: name }, query: { platform } } })),
    touches: ["/registry-logins", "/images"],
    done: (_, { name }) => t("removed", { name }),
    optimistic: (cache, login) => cache.dropItems<Login>("/registry-logins", (one) => keyOf(one) === keyOf(login)),
  });
  return (login) =>
    confirm({
      title: t("removeLoginTitle", { name: login.name }),
      text: t("removeLoginText", { registry: login.registry }),
      action: t("removeName", { name: login.name }),
      onConfirm: () => remove.mutate(login),
    });
}
