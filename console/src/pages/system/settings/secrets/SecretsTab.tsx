/** The user's own secrets and those of groups: their names, never their values. */
import { Button, Text } from "@mantine/core";
import { KeySquare, Pencil, Plus, Trash2 } from "lucide-react";
import { useMemo } from "react";

import { api, sent, type Schema } from "@/api/client";
import { useAction } from "@/api/useAction";
import { useAll } from "@/api/useAll";
import { useIsOperator } from "@/app/session";
import { useFilters } from "@/app/useFilters";
import { SecretForm } from "@/pages/system/settings/secrets/SecretForm";
import { texts } from "@/pages/system/settings/secrets/texts";
import { useConfirm } from "@/parts/confirm";
import { DataTable, type Column } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { IconActions } from "@/parts/IconActions";
import { Moment } from "@/parts/Moment";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { useTexts, type Say } from "@/texts/texts";

type Secret = Schema<"SecretView">;
/** `put` is empty, `new`, or the key of the secret that is replaced. */
const FILTERS = { put: "" };

export function SecretsTab() {
  const t = useTexts(texts);
  const [filters, setFilters] = useFilters(FILTERS);
  const { data, error, refetch } = useAll("/secrets");
  const columns = useMemo(() => columnsOf(t), [t]);
  const add = (
    <Button leftSection={<Plus size={15} />} onClick={() => setFilters({ put: "new" })}>
      {t("newSecret")}
    </Button>
  );
  if (error !== null && data === undefined) return <ProblemNote error={error} onRetry={() => void refetch()} />;
  const replaced = data?.find((secret) => keyOf(secret) === filters.put);
  return (
    <Panel title={t("secrets")} tools={data?.length === 0 ? undefined : add}>
      <Text size="sm" c="dimmed" mb="sm">
        {t("secretsHint")}
      </Text>
      <DataTable
        label={t("secrets")}
        rows={data}
        columns={columns}
        rowKey={keyOf}
        actions={(secret) => <Actions secret={secret} onReplace={() => setFilters({ put: keyOf(secret) })} />}
        empty={
          <EmptyState icon={KeySquare} title={t("noSecrets")} hint={t("noSecretsHint")}>
            {add}
          </EmptyState>
        }
      />
      {(filters.put === "new" || replaced !== undefined) && (
        <SecretForm key={filters.put} replaced={replaced} onClose={() => setFilters({ put: "" })} />
      )}
    </Panel>
  );
}

function keyOf(secret: Secret): string {
  return `${secret.group ?? ""}/${secret.name}`;
}

function columnsOf(t: Say<typeof texts>): Column<Secret>[] {
  return [
    { key: "name", title: t("name"), sort: (secret) => secret.name, render: (secret) => <code>{secret.name}</code> },
    {
      key: "owner",
      title: t("owner"),
      sort: (secret) => secret.group ?? "",
      render: (secret) => (secret.group === null ? t("mine") : t("ofGroup", { name: secret.group })),
    },
    { key: "by", title: t("setBy"), wide: true, sort: (secret) => secret.set_by, render: (secret) => secret.set_by },
    {
      key: "at",
      title: t("setAt"),
      wide: true,
      sort: (secret) => secret.set_at,
      render: (secret) => <Moment at={secret.set_at} />,
    },
  ];
}

function Actions({ secret, onReplace }: { secret: Secret; onReplace: () => void }) {
  const t = useTexts(texts);
  const confirm = useConfirm();
  const isOperator = useIsOperator();
  const { name, group } = secret;
  const refusal = group !== null && !isOperator ? t("ofOperators") : undefined;
  const remove = useAction({
    run: () =>
      sent(
        api.DELETE("/secrets/{secret}", { params: { path: { secret: name }, query: group === null ? {} : { group } } }),
      ),
    touches: ["/secrets"],
    optimistic: (cache) => cache.dropItems<Secret>("/secrets", (one) => keyOf(one) === keyOf(secret)),
    done: () => t("deleted", { name }),
  });
  return (
    <IconActions
      actions={[
        { icon: Pencil, label: t("replace", { name }), refusal, onClick: onReplace },
        {
          icon: Trash2,
          label: t("delete", { name }),
          danger: true,
          refusal,
          onClick: () =>
            confirm({
              title: t("deleteTitle", { name }),
              text: t("deleteText"),
              action: t("deleteAction"),
              onConfirm: () => remove.mutate(undefined),
            }),
        },
      ]}
    />
  );
}
