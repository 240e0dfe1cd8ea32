/** By which accounts people sign in, beside local ones. */
import { Alert, Button, Group, List, Switch, Text } from "@mantine/core";
import { LogIn, Plus, Stethoscope } from "lucide-react";
import { useMemo, useState } from "react";

import { api, sent, type Schema } from "@/api/client";
import { useAction } from "@/api/useAction";
import { useAll } from "@/api/useAll";
import { useFilters } from "@/app/useFilters";
import { ProviderForm, type ProviderView } from "@/pages/system/settings/providers/ProviderForm";
import { texts } from "@/pages/system/settings/providers/texts";
import { DataTable, Faint, type Column } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { StateBadge } from "@/parts/StateBadge";
import { useTexts, type Say } from "@/texts/texts";

const FILTERS = { open: "", create: "" };

interface Tested {
  readonly name: string;
  readonly result: Schema<"ProviderTestView">;
}

export function ProvidersTab() {
  const t = useTexts(texts);
  const [filters, setFilters] = useFilters(FILTERS);
  const [tested, setTested] = useState<Tested>();
  const { data, error, refetch } = useAll("/auth/providers/all");
  const columns = useMemo(() => columnsOf(t), [t]);
  const opened = data?.find((provider) => provider.id === filters.open);
  const create = (
    <Button leftSection={<Plus size={15} />} onClick={() => setFilters({ create: "1" })}>
      {t("newProvider")}
    </Button>
  );
  if (error !== null && data === undefined) return <ProblemNote error={error} onRetry={() => void refetch()} />;
  return (
    <Panel title={t("providers")} tools={data?.length === 0 ? undefined : create}>
      <Text size="sm" c="dimmed" mb="sm">
        {t("providersHint")}
      </Text>
      {tested !== undefined && <TestResult tested={tested} onClose={() => setTested(undefined)} />}
      <DataTable
        label={t("providers")}
        rows={data}
        columns={columns}
        rowKey={(provider) => provider.id}
        onOpen={(provider) => setFilters({ open: provider.id })}
        actions={(provider) => <Actions provider={provider} onTested={setTested} />}
        empty={
          <EmptyState icon={LogIn} title={t("noProviders")} hint={t("noProvidersHint")}>
            {create}
          </EmptyState>
        }
      />
      {opened !== undefined && (
        <ProviderForm key={opened.id} provider={opened} onClose={() => setFilters({ open: "" })} />
      )}
      {filters.create !== "" && <ProviderForm onClose={() => setFilters({ create: "" })} />}
    </Panel>
  );
}

function columnsOf(t: Say<typeof texts>): Column<ProviderView>[] {
  return [
    {
      key: "title",
      title: t("provider"),
      sort: (provider) => provider.title,
      render: (provider) => (
        <>
          {provider.title || provider.id}
          <Faint>{provider.id}</Faint>
        </>
      ),
    },
    {
      key: "kind",
      title: t("kind"),
      render: (provider) => (provider.kind in texts ? t(provider.kind as "oidc") : provider.kind),
    },
    { key: "issuer", title: t("issuer"), wide: true, render: (provider) => provider.issuer || "–" },
    {
      key: "people",
      title: t("people"),
      numeric: true,
      wide: true,
      sort: (provider) => provider.users,
      render: (provider) => provider.users,
    },
  ];
}

function Actions({ provider, onTested }: { provider: ProviderView; onTested: (tested: Tested) => void }) {
  const t = useTexts(texts);
  const name = provider.title || provider.id;
  const path = { params: { path: { id: provider.id } } };
  const test = useAction({
    run: () => sent(api.POST("/auth/providers/{id}/test", path)),
    touches: [],
    onDone: (result) => onTested({ name, result }),
  });
  const flip = useAction({
    run: (enabled: boolean) => sent(api.PATCH("/auth/providers/{id}", { ...path, body: { enabled } })),
    touches: ["/auth/providers"],
    optimistic: (cache, enabled) =>
      cache.changeItems<ProviderView>(
        "/auth/providers/all",
        (one) => one.id === provider.id,
        (one) => ({ ...one, enabled }),
      ),
    done: (after) => t(after.enabled ? "switchedOn" : "switchedOff", { name }),
  });
  return (
    <Group gap="sm" wrap="nowrap">
      <Button
        variant="default"
        size="compact-xs"
        leftSection={<Stethoscope size={13} />}
        loading={test.isPending}
        aria-label={t("testOf", { name })}
        onClick={() => test.mutate(undefined)}
      >
        {t("test")}
      </Button>
      <Switch
        size="sm"
        aria-label={t("on", { name })}
        checked={provider.enabled}
        onChange={(event) => flip.mutate(event.currentTarget.checked)}
      />
    </Group>
  );
}

/** Each thing that was looked at, what is wrong with it, and what to do about that. */
function TestResult({ tested: { name, result }, onClose }: { tested: Tested; onClose: () => void }) {
  const t = useTexts(texts);
  return (
    <Alert
      color={result.ok ? "teal" : "red"}
      mb="sm"
      role="status"
      title={t(result.ok ? "testGood" : "testBad", { name })}
      withCloseButton
      onClose={onClose}
    >
      <List listStyleType="none" spacing={6} size="sm">
        {result.checks.map((check) => (
          <List.Item key={check.name + check.detail}>
            <Group gap="xs" wrap="nowrap" align="flex-start">
              <StateBadge state={check.state} />
              <div style={{ overflowWrap: "anywhere" }}>
                <strong>{check.name}</strong>: {check.detail}
                {check.hint !== "" && (
                  <Text size="xs" c="dimmed">
                    {check.hint}
                  </Text>
                )}
              </div>
            </Group>
          </List.Item>
        ))}
      </List>
    </Alert>
  );
}
