import { Badge, Button, Group, Text, Tooltip } from "@mantine/core";
import { Plus, Ticket } from "lucide-react";
import { useMemo, useState } from "react";

import { api, sent, type Schema } from "@/api/client";
import { useAction } from "@/api/useAction";
import { useAll } from "@/api/useAll";
import { useMay } from "@/app/session";
import { useFilters } from "@/app/useFilters";
import { NewToken } from "@/pages/system/settings/tokens/NewToken";
import { TokenForm } from "@/pages/system/settings/tokens/TokenForm";
import { texts } from "@/pages/system/settings/tokens/texts";
import { useConfirm } from "@/parts/confirm";
import { DataTable, type Column } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { Moment } from "@/parts/Moment";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { useTexts, type Say } from "@/texts/texts";

type TokenView = Schema<"TokenView">;
const FILTERS = { create: "" };

export function TokensTab() {
  const t = useTexts(texts);
  const may = useMay("tokens");
  const [filters, setFilters] = useFilters(FILTERS);
  // In memory only, until it is put away: never in the address, the storage or the cache of answers.
  const [made, setMade] = useState<Schema<"NewTokenView">>();
  const { data, error, refetch } = useAll("/me/tokens");
  const columns = useMemo(() => columnsOf(t), [t]);
  const create = (
    <Tooltip label={t("mayNot")} disabled={may}>
      <Button leftSection={<Plus size={15} />} disabled={!may} onClick={() => setFilters({ create: "1" })}>
        {t("newToken")}
      </Button>
    </Tooltip>
  );
  if (error !== null && data === undefined) return <ProblemNote error={error} onRetry={() => void refetch()} />;
  return (
    <Panel title={t("tokens")} tools={data?.length === 0 ? undefined : create}>
      <Text size="sm" c="dimmed" mb="sm">
        {may ? t("tokensHint") : t("mayNot")}
      </Text>
      {made !== undefined && <NewToken made={made} onPutAway={() => setMade(undefined)} />}
      <DataTable
        label={t("tokens")}
        rows={data}
        columns={columns}
        rowKey={(token) => token.id}
        initialSort={{ key: "created", descending: true }}
        actions={(token) => <Revoke token={token} />}
        empty={
          <EmptyState icon={Ticket} title={t("noTokens")} hint={t("noTokensHint")}>
            {create}
          </EmptyState>
        }
      />
      {filters.create !== "" && may && (
        <TokenForm
          onClose={() => setFilters({ create: "" })}
          onMade={(token) => {
            setFilters({ create: "" });
            setMade(token);
          }}
        />
      )}
    </Panel>
  );
}

function columnsOf(t: Say<typeof texts>): Column<TokenView>[] {
  return [
    { key: "name", title: t("name"), sort: (token) => token.name, render: (token) => token.name },
    {
      key: "scope",
      title: t("scope"),
      render: (token) => (
        <Group gap={4}>
          {token.scopes.map((scope) => (
            <Badge key={scope} variant="light" color="gray" tt="none" fw={500} miw="max-content">
              {t(scope)}
            </Badge>
          ))}
        </Group>
      ),
    },
    {
      key: "used",
      title: t("lastUsed"),
      sort: (token) => token.last_used_at,
      render: (token) => (token.last_used_at === null ? t("never") : <Moment at={token.last_used_at} />),
    },
    {
      key: "expires",
      title: t("expires"),
      wide: true,
      sort: (token) => token.expires_at,
      render: (token) => <Moment at={token.expires_at} />,
    },
    {
      key: "created",
      title: t("created"),
      wide: true,
      sort: (token) => token.created_at,
      render: (token) => <Moment at={token.created_at} />,
    },
  ];
}

function Revoke({ token }: { token: TokenView }) {
  const t = useTexts(texts);
  const confirm = useConfirm();
  const { name } = token;
  const revoke = useAction({
    run: () => sent(api.DELETE("/me/tokens/{token_id}", { params: { path: { token_id: token.id } } })),
    touches: ["/me/tokens"],
    optimistic: (cache) => cache.dropItems<TokenView>("/me/tokens", (one) => one.id === token.id),
    done: () => t("revoked", { name }),
  });
  return (
    <Button
      variant="subtle"
      color="red"
      size="compact-xs"
      aria-label={t("revokeOf", { name })}
      onClick={() =>
        confirm({
          title: t("revokeTitle", { name }),
          text: t("revokeText"),
          action: t("revokeAction"),
          onConfirm: () => revoke.mutate(undefined),
        })
      }
    >
      {t("revoke")}
    </Button>
  );
}
