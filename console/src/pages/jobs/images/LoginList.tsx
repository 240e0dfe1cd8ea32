/** Logins to registries. A secret only ever goes in; what is listed is whose it is and where it is used. */
import { Badge, Group } from "@mantine/core";
import { KeyRound, List, RefreshCw, Trash2 } from "lucide-react";
import { useState } from "react";

import { api, sent, type Schema } from "@/api/client";
import { useAction } from "@/api/useAction";
import { useAll } from "@/api/useAll";
import { AddImageButton } from "@/pages/jobs/images/ImageList";
import { LoginDrawer } from "@/pages/jobs/images/LoginDrawer";
import { RegistryImages } from "@/pages/jobs/images/RegistryImages";
import { texts } from "@/pages/jobs/images/texts";
import { useConfirm } from "@/parts/confirm";
import type { Column } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { IconActions } from "@/parts/IconActions";
import { ListPanel } from "@/parts/ListPanel";
import { Moment } from "@/parts/Moment";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

export type Login = Schema<"RegistryLoginView">;

export function LoginList({ open, onOpen }: { open: string; onOpen: (key: string) => void }) {
  const t = useTexts(texts);
  const logins = useAll("/registry-logins");
  const remove = useRemove();
  const [listed, setListed] = useState<Login>();
  const columns = useColumns();
  const opened = logins.data?.find((login) => keyOf(login) === open);
  const add = <AddImageButton label={t("addLogin")} onClick={() => onOpen("new")} />;
  return (
    <>
      <ListPanel
        title={t("logins")}
        tools={add}
        query={logins}
        columns={columns}
        rowKey={keyOf}
        actions={(login) => (
          <IconActions
            actions={[
              {
                icon: List,
                label: t("imagesOf", { registry: login.registry }),
                onClick: () => setListed(login),
              },
              {
                icon: RefreshCw,
                label: t("replaceName", { name: login.name }),
                onClick: () => onOpen(keyOf(login)),
              },
              {
                icon: Trash2,
                label: t("removeName", { name: login.name }),
                danger: true,
                onClick: () => remove(login),
              },
            ]}
          />
        )}
        empty={
          <EmptyState icon={KeyRound} title={t("emptyLogins")} hint={t("emptyLoginsHint")}>
            {add}
          </EmptyState>
        }
      />
      <RegistryImages login={listed} onClose={() => setListed(undefined)} />
      <LoginDrawer
        key={open}
        login={opened}
        opened={open === "new" || opened !== undefined}
        onClose={() => onOpen("")}
      />
    </>
  );
}

function keyOf({ name, platform }: Login): string {
  return platform ? `platform/${name}` : name;
}

function useColumns(): readonly Column<Login>[] {
  const t = useTexts(texts);
  const c = useTexts(common);
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

function useRemove(): (login: Login) => void {
  const t = useTexts(texts);
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
