/** The channels that receive notifications, a test of each with its outcome, and everything that was sent. */
import { Alert, Button, Group, Stack, Switch } from "@mantine/core";
import { Megaphone, Plus, Send } from "lucide-react";
import { useMemo, useState } from "react";

import { api, sent, type Schema } from "@/api/client";
import { useAction } from "@/api/useAction";
import { useAll } from "@/api/useAll";
import { useFilters } from "@/app/useFilters";
import { ChannelForm } from "@/pages/alerts/channels/ChannelForm";
import { Deliveries } from "@/pages/alerts/channels/Deliveries";
import { texts } from "@/pages/alerts/channels/texts";
import { DataTable, Faint, type Column } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { StateBadge } from "@/parts/StateBadge";
import { useTexts, type Say } from "@/texts/texts";

type ChannelView = Schema<"ChannelView">;
const FILTERS = { open: "", create: "" };

export function ChannelsTab() {
  const t = useTexts(texts);
  const [filters, setFilters] = useFilters(FILTERS);
  const { data, error, refetch } = useAll("/channels");
  const [tested, setTested] = useState<Schema<"DeliveryView">>();
  const columns = useMemo(() => columnsOf(t), [t]);
  const opened = data?.find((channel) => channel.name === filters.open && !channel.from_config);
  const create = (
    <Button leftSection={<Plus size={15} />} onClick={() => setFilters({ create: "1" })}>
      {t("newChannel")}
    </Button>
  );
  if (error !== null && data === undefined) return <ProblemNote error={error} onRetry={() => void refetch()} />;
  return (
    <Stack>
      <Panel title={t("channels")} tools={data?.length === 0 ? undefined : create}>
        {tested !== undefined && <Outcome delivery={tested} onClose={() => setTested(undefined)} />}
        <DataTable
          label={t("channels")}
          rows={data}
          columns={columns}
          rowKey={(channel) => channel.name}
          onOpen={(channel) => setFilters({ open: channel.name })}
          actions={(channel) => <Actions channel={channel} onTested={setTested} />}
          empty={
            <EmptyState icon={Megaphone} title={t("noChannels")} hint={t("noChannelsHint")}>
              {create}
            </EmptyState>
          }
        />
      </Panel>
      <Deliveries channels={data?.map((channel) => channel.name) ?? []} />
      {opened !== undefined && (
        <ChannelForm key={opened.name} channel={opened} onClose={() => setFilters({ open: "" })} />
      )}
      {filters.create !== "" && <ChannelForm onClose={() => setFilters({ create: "" })} />}
    </Stack>
  );
}

function Outcome({ delivery, onClose }: { delivery: Schema<"DeliveryView">; onClose: () => void }) {
  const t = useTexts(texts);
  const values = { name: delivery.channel, error: delivery.error };
  const [color, text] =
    delivery.state === "sent"
      ? (["teal", t("testTook", values)] as const)
      : delivery.state === "failed"
        ? (["red", t("testRefused", values)] as const)
        : (["yellow", t("testWaits", values)] as const);
  return (
    <Alert color={color} mb="sm" role="status" withCloseButton onClose={onClose}>
      {text}
    </Alert>
  );
}

function Actions({
  channel,
  onTested,
}: {
  channel: ChannelView;
  onTested: (delivery: Schema<"DeliveryView">) => void;
}) {
  const t = useTexts(texts);
  const path = { params: { path: { name: channel.name } } };
  const test = useAction({
    run: () => sent(api.POST("/channels/{name}/test", path)),
    touches: ["/deliveries"],
    onDone: onTested,
  });
  const flip = useAction({
    run: (enabled: boolean) => sent(api.PATCH("/channels/{name}", { ...path, body: { enabled } })),
    touches: ["/channels"],
    optimistic: (cache, enabled) =>
      cache.changeItems<ChannelView>(
        "/channels",
        (one) => one.name === channel.name,
        (one) => ({ ...one, enabled }),
      ),
    done: (after) => t(after.enabled ? "switchedOn" : "switchedOff", { name: channel.name }),
  });
  return (
    <Group gap="sm" wrap="nowrap">
      <Button
        variant="default"
        size="compact-xs"
        leftSection={<Send size={13} />}
        loading={test.isPending}
        aria-label={t("testOf", { name: channel.name })}
        onClick={() => test.mutate(undefined)}
      >
        {t("test")}
      </Button>
      <Switch
        size="sm"
        aria-label={t("on", { name: channel.name })}
        checked={channel.enabled}
        disabled={channel.from_config}
        onChange={(event) => flip.mutate(event.currentTarget.checked)}
      />
    </Group>
  );
}

function columnsOf(t: Say<typeof texts>): Column<ChannelView>[] {
  return [
    {
      key: "name",
      title: t("channel"),
      sort: (channel) => channel.name,
      render: (channel) => (
        <>
          {channel.name}
          {channel.from_config ? (
            <Faint>{t("fromConfig")}</Faint>
          ) : (
            channel.description !== "" && <Faint>{channel.description}</Faint>
          )}
        </>
      ),
    },
    { key: "address", title: t("address"), wide: true, render: (channel) => <code>{channel.address}</code> },
    { key: "from", title: t("from"), render: (channel) => <StateBadge state={channel.min_severity} /> },
  ];
}
