import { Button, Group, Select, Text } from "@mantine/core";
import { Inbox } from "lucide-react";
import { useMemo } from "react";

import { api, sent, type Schema } from "@/api/client";
import { useAction } from "@/api/useAction";
import { usePages } from "@/api/useAll";
import { useFilters } from "@/app/useFilters";
import { texts } from "@/pages/alerts/channels/texts";
import { DataTable, type Column } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { Moment } from "@/parts/Moment";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { StateBadge } from "@/parts/StateBadge";
import { common } from "@/texts/common";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

type DeliveryView = Schema<"DeliveryView">;
const FILTERS = { channel: "" };

export function Deliveries({ channels }: { channels: readonly string[] }) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const [filters, setFilters] = useFilters(FILTERS);
  const found = usePages("/deliveries", { channel: filters.channel || undefined, limit: 20 });
  const columns = useColumns();
  const only = (
    <Select
      size="xs"
      w={180}
      aria-label={t("deliveriesOf")}
      placeholder={t("deliveriesOf")}
      clearable
      data={[...channels]}
      value={filters.channel || null}
      onChange={(channel) => setFilters({ channel: channel ?? "" })}
    />
  );
  return (
    <Panel title={t("deliveries")} tools={only}>
      {found.error !== null && found.items === undefined ? (
        <ProblemNote error={found.error} onRetry={found.retry} />
      ) : (
        <DataTable
          label={t("deliveries")}
          rows={found.items}
          columns={columns}
          rowKey={(delivery) => String(delivery.id)}
          actions={(delivery) => delivery.state === "failed" && <Resend delivery={delivery} />}
          empty={<EmptyState icon={Inbox} title={t("noDeliveries")} hint={t("noDeliveriesHint")} />}
          foot={
            found.hasMore && (
              <Group justify="center" p="sm">
                <Button variant="default" loading={found.isLoadingMore} onClick={found.loadMore}>
                  {c("loadMore")}
                </Button>
              </Group>
            )
          }
        />
      )}
    </Panel>
  );
}

function useColumns(): Column<DeliveryView>[] {
  const t = useTexts(texts);
  const c = useTexts(common);
  return useMemo(
    () => [
      { key: "title", title: t("message"), render: (delivery: DeliveryView) => <Message delivery={delivery} /> },
      { key: "channel", title: t("channel"), render: (delivery: DeliveryView) => delivery.channel },
      { key: "state", title: c("state"), render: (delivery: DeliveryView) => <StateBadge state={delivery.state} /> },
      {
        key: "tries",
        title: t("tries"),
        numeric: true,
        wide: true,
        render: (delivery: DeliveryView) => delivery.attempts,
      },
      {
        key: "at",
        title: t("at"),
        wide: true,
        render: (delivery: DeliveryView) => <Moment at={delivery.sent_at ?? delivery.created_at} />,
      },
    ],
    [t, c],
  );
}

function Message({ delivery }: { delivery: DeliveryView }) {
  const t = useTexts(texts);
  const format = useFormat();
  const next =
    delivery.state === "waiting" && delivery.attempts > 0 && delivery.next_try_at !== null
      ? `; ${t("nextTry", { when: format.ago(delivery.next_try_at) })}`
      : "";
  return (
    <>
      <Text size="sm" lineClamp={1} title={delivery.body} style={{ whiteSpace: "normal" }}>
        {delivery.title}
      </Text>
      {delivery.error !== "" && (
        <Text size="xs" c="dimmed" lineClamp={2} style={{ whiteSpace: "normal" }}>
          {delivery.error}
          {next}
        </Text>
      )}
    </>
  );
}

function Resend({ delivery }: { delivery: DeliveryView }) {
  const t = useTexts(texts);
  const resend = useAction({
    run: () => sent(api.POST("/deliveries/{delivery}/resend", { params: { path: { delivery: delivery.id } } })),
    touches: ["/deliveries"],
    done: () => t("resent"),
  });
  return (
    <Button
      variant="subtle"
      size="compact-xs"
      loading={resend.isPending}
      aria-label={t("resendOf", { title: delivery.title })}
      onClick={() => resend.mutate(undefined)}
    >
      {t("resend")}
    </Button>
  );
}
