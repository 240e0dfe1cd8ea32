/** The order of a queue and its reasons, the order of the user's own jobs, and the scores. */
import { Group, Select, Skeleton, Tabs, Text } from "@mantine/core";
import { Handshake, ListOrdered, Scale, Waypoints } from "lucide-react";

import type { Schema } from "@/api/client";
import { useAll } from "@/api/useAll";
import { useMe } from "@/app/session";
import { useFilters } from "@/app/useFilters";
import { FreeGpus } from "@/pages/scheduling/queue/FreeGpus";
import { OrderTab } from "@/pages/scheduling/queue/OrderTab";
import { ReceiptsTab } from "@/pages/scheduling/queue/ReceiptsTab";
import { ScoresTab } from "@/pages/scheduling/queue/ScoresTab";
import { texts } from "@/pages/scheduling/queue/texts";
import { EmptyState } from "@/parts/EmptyState";
import { PageHeader } from "@/parts/PageHeader";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import ResourcePanel from "@/parts/ResourcePanel";
import { navigation } from "@/texts/navigation";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

type Queue = Schema<"QueueView">;

const TABS = ["order", "scores", "receipts"];
const DEFAULTS = { queue: "", tab: "order", mine: "" } as const;

export default function QueuePage() {
  const t = useTexts(texts);
  const n = useTexts(navigation);
  const me = useMe();
  const [filters, setFilters] = useFilters(DEFAULTS);
  const { data: queues, error, refetch } = useAll("/queues");
  const name = filters.queue || usualQueue(queues, me.pool);
  const queue = queues?.find((one) => one.name === name);
  return (
    <>
      <PageHeader title={n("queue")} detail={queue !== undefined && <Figures queue={queue} />}>
        {queue !== undefined && <FreeGpus pool={queue.pool} />}
        <Select
          aria-label={t("pickQueue")}
          w={240}
          allowDeselect={false}
          searchable={(queues?.length ?? 0) > 8}
          data={
            queues?.map((one) => ({ value: one.name, label: t("lengthOf", { name: one.name, n: one.queued }) })) ?? []
          }
          value={queue?.name ?? null}
          onChange={(next) => setFilters({ queue: next ?? "" })}
        />
      </PageHeader>
      {error !== null && queues === undefined && <ProblemNote error={error} onRetry={() => void refetch()} />}
      {queues === undefined && error === null && <Skeleton h={320} />}
      <ResourcePanel mb="md" />
      {queues !== undefined && (
        <Tabs
          value={TABS.find((tab) => tab === filters.tab) ?? "order"}
          onChange={(tab) => setFilters({ tab: tab ?? "order" })}
          keepMounted={false}
        >
          <Tabs.List mb="md" aria-label={t("tabs")}>
            <Tabs.Tab value="order" leftSection={<ListOrdered size={15} />}>
              {t("order")}
            </Tabs.Tab>
            <Tabs.Tab value="scores" leftSection={<Scale size={15} />}>
              {t("scores")}
            </Tabs.Tab>
            <Tabs.Tab value="receipts" leftSection={<Handshake size={15} />}>
              {t("receipts")}
            </Tabs.Tab>
          </Tabs.List>
          <Tabs.Panel value="order">
            {queue === undefined ? (
              <NoQueue name={name} />
            ) : (
              <OrderTab
                key={queue.name}
                queue={queue}
                onlyMine={filters.mine !== ""}
                onOnlyMine={(on) => setFilters({ mine: on ? "yes" : "" })}
              />
            )}
          </Tabs.Panel>
          <Tabs.Panel value="scores">
            <ScoresTab queue={queue} />
          </Tabs.Panel>
          <Tabs.Panel value="receipts">
            <ReceiptsTab />
          </Tabs.Panel>
        </Tabs>
      )}
    </>
  );
}

/** The default queue of the user's pool, else the first queue. */
function usualQueue(queues: readonly Queue[] | undefined, pool: string | null): string {
  const own = queues?.find((queue) => queue.name === (pool ?? "default"));
  return own?.name ?? queues?.[0]?.name ?? "";
}

function Figures({ queue }: { queue: Queue }) {
  const t = useTexts(texts);
  const format = useFormat();
  const figures = [
    [queue.queued, t("waiting")],
    [queue.running, t("running")],
    [queue.held_gpus, t("held")],
  ] as const;
  return (
    <Group gap="sm" component="span">
      {figures.map(([value, label]) => (
        <Text key={label} size="sm" span className="num">
          {format.number(value)} {label}
        </Text>
      ))}
    </Group>
  );
}

function NoQueue({ name }: { name: string }) {
  const t = useTexts(texts);
  return (
    <Panel>
      {name === "" ? (
        <EmptyState icon={Waypoints} title={t("noQueues")} hint={t("noQueuesHint")} />
      ) : (
        <EmptyState icon={Waypoints} title={t("noSuchQueue", { name })} hint={t("noSuchQueueHint")} />
      )}
    </Panel>
  );
}
