import { Alert, Group, SimpleGrid, Skeleton, Stack, Text } from "@mantine/core";

import { $api, type Schema } from "@/api/client";
import { LicencePanel } from "@/pages/system/settings/about/LicencePanel";
import { texts } from "@/pages/system/settings/about/texts";
import { DataTable } from "@/parts/DataTable";
import { Moment } from "@/parts/Moment";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { Stat } from "@/parts/Stat";
import { StateBadge } from "@/parts/StateBadge";
import { useFormat } from "@/texts/format";
import { useTextOr, useTexts } from "@/texts/texts";

export function AboutTab() {
  const { data: about, error, refetch } = $api.useQuery("get", "/about");
  if (error !== null) return <ProblemNote error={error} onRetry={() => void refetch()} />;
  if (about === undefined) return <Skeleton h={320} />;
  return (
    <Stack>
      <Figures about={about} />
      <SimpleGrid cols={{ base: 1, md: 2 }}>
        <Parts parts={about.parts} />
        <Stack>
          <IsolationPanel isolation={about.isolation} />
          <SharesPanel shares={about.gpu_shares} />
          <StorePanel store={about.store} />
          <LicencePanel licence={about.licence} />
        </Stack>
      </SimpleGrid>
    </Stack>
  );
}

function Figures({ about }: { about: Schema<"AboutView"> }) {
  const t = useTexts(texts);
  const format = useFormat();
  return (
    <SimpleGrid cols={{ base: 1, sm: 3 }}>
      <Stat label={t("version")} value={about.version} detail={about.build} />
      <Stat
        label={t("uptime")}
        value={format.duration(about.uptime_seconds)}
        detail={<Moment at={about.started_at} />}
      />
      <Stat label={t("engines")} value={about.engines.join(", ")} />
    </SimpleGrid>
  );
}

function Parts({ parts }: { parts: readonly Schema<"PartView">[] }) {
  const t = useTexts(texts);
  return (
    <Panel title={t("parts")}>
      <DataTable
        label={t("parts")}
        rows={parts}
        rowKey={(part) => part.name}
        columns={[
          { key: "name", title: t("part"), render: (part) => part.name },
          {
            key: "health",
            title: t("health"),
            render: (part) => <StateBadge state={part.healthy ? "healthy" : "failed"} />,
          },
          { key: "detail", title: t("detail"), render: (part) => part.detail || t("noDetail") },
        ]}
      />
    </Panel>
  );
}

function IsolationPanel({ isolation }: { isolation: Schema<"IsolationView"> }) {
  const t = useTexts(texts);
  return (
    <Panel title={t("isolation")}>
      <Stack gap={6}>
        <Alert
          color={isolation.separation === "accounts" ? "green" : "orange"}
          title={t(isolation.separation)}
          role="note"
        >
          {t(`${isolation.separation}_text`)}
        </Alert>
        <Text size="sm" c="dimmed" style={{ overflowWrap: "anywhere" }}>
          {isolation.detail}
        </Text>
      </Stack>
    </Panel>
  );
}

function SharesPanel({ shares }: { shares: Schema<"GpuSharesView"> }) {
  const t = useTexts(texts);
  return (
    <Panel title={t("shares")}>
      <Stack gap={6}>
        <Text>{t(shares.enforced ? "sharesEnforced" : "sharesNotEnforced")}</Text>
        <Text size="sm" c="dimmed" style={{ overflowWrap: "anywhere" }}>
          {shares.detail}
        </Text>
      </Stack>
    </Panel>
  );
}

function StorePanel({ store }: { store: Readonly<Record<string, string>> }) {
  const t = useTexts(texts);
  const factText = useTextOr(texts);
  return (
    <Panel title={t("store")}>
      <Stack gap={6}>
        {Object.entries(store).map(([name, value]) => (
          <Group key={name} justify="space-between" wrap="nowrap" align="baseline">
            <Text size="sm" c="dimmed">
              {factText(name)}
            </Text>
            <Text size="sm" style={{ overflowWrap: "anywhere" }} ta="right">
              {value}
            </Text>
          </Group>
        ))}
      </Stack>
    </Panel>
  );
}
