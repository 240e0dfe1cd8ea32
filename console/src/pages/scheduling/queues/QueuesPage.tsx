import { Badge, Button } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { ListOrdered, Pencil, Plus, Trash2, Waypoints } from "lucide-react";
import { useMemo, useState } from "react";

import { useAll } from "@/api/useAll";
import { useFilters } from "@/app/useFilters";
import { isDefaultOfPool, type Queue } from "@/pages/scheduling/queues/draft";
import { HeldBar } from "@/pages/scheduling/queues/HeldBar";
import { QueueForm } from "@/pages/scheduling/queues/QueueForm";
import { useDeleteQueues, useRefusal } from "@/pages/scheduling/queues/useQueueAdmin";
import { useLimitText, usePolicyText } from "@/pages/scheduling/queues/useQueueTexts";
import { texts } from "@/pages/scheduling/queues/texts";
import { BatchBar } from "@/parts/BatchBar";
import { DataTable, Faint, type Column } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { PageHeader } from "@/parts/PageHeader";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { RowMenu } from "@/parts/RowMenu";
import { common } from "@/texts/common";
import { useFormat } from "@/texts/format";
import { navigation } from "@/texts/navigation";
import { useTexts } from "@/texts/texts";

/** `open` is the queue that is being edited; `new` says that one is being made. */
const FILTERS = { open: "", new: "" };

export default function QueuesPage() {
  const t = useTexts(texts);
  const n = useTexts(navigation);
  const [filters, setFilters] = useFilters(FILTERS);
  const { data: queues, error, refetch } = useAll("/queues");
  const open = queues?.find((queue) => queue.name === filters.open);
  const close = () => setFilters({ open: "", new: "" });
  return (
    <>
      <PageHeader title={n("queues")} detail={t("detail")}>
        <Button leftSection={<Plus size={15} />} onClick={() => setFilters({ new: "yes", open: "" })}>
          {t("create")}
        </Button>
      </PageHeader>
      {error !== null && queues === undefined ? (
        <ProblemNote error={error} onRetry={() => void refetch()} />
      ) : (
        <QueueTable queues={queues} onEdit={(name) => setFilters({ open: name, new: "" })} />
      )}
      {filters.new !== "" && queues !== undefined && (
        <QueueForm queue={undefined} taken={queues.map((queue) => queue.name)} onClose={close} />
      )}
      {open !== undefined && <QueueForm key={open.name} queue={open} taken={[]} onClose={close} />}
    </>
  );
}

function QueueTable({ queues, onEdit }: { queues: readonly Queue[] | undefined; onEdit: (name: string) => void }) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const n = useTexts(navigation);
  const navigate = useNavigate();
  const refusalOf = useRefusal();
  const columns = useQueueColumns();
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const remove = useDeleteQueues(() => setSelected(new Set()));
  const chosen = queues?.filter((queue) => selected.has(queue.name)) ?? [];
  const stuck = chosen.filter((queue) => refusalOf(queue) !== undefined).map((queue) => queue.name);
  return (
    <>
      <BatchBar
        count={chosen.length}
        actions={[
          {
            label: c("delete"),
            icon: Trash2,
            danger: true,
            refusal: stuck.length > 0 ? t("cannotSome", { names: stuck.join(", ") }) : undefined,
            onClick: () => remove(chosen.map((queue) => queue.name)),
          },
        ]}
        onClear={() => setSelected(new Set())}
      />
      <Panel p={0}>
        <DataTable
          label={n("queues")}
          rows={queues}
          columns={columns}
          rowKey={(queue) => queue.name}
          onOpen={(queue) => onEdit(queue.name)}
          selected={selected}
          onSelect={setSelected}
          initialSort={{ key: "name", descending: false }}
          empty={<EmptyState icon={Waypoints} title={t("empty")} hint={t("emptyHint")} />}
          actions={(queue) => (
            <RowMenu
              label={t("menuOf", { name: queue.name })}
              actions={[
                { label: c("edit"), icon: Pencil, onClick: () => onEdit(queue.name) },
                {
                  label: t("showOrder"),
                  icon: ListOrdered,
                  onClick: () => void navigate({ to: "/queue", search: { queue: queue.name } }),
                },
                {
                  label: c("delete"),
                  icon: Trash2,
                  danger: true,
                  refusal: refusalOf(queue),
                  onClick: () => remove([queue.name]),
                },
              ]}
            />
          )}
        />
      </Panel>
    </>
  );
}

function useQueueColumns(): readonly Column<Queue>[] {
  const t = useTexts(texts);
  const c = useTexts(common);
  const format = useFormat();
  const policyText = usePolicyText();
  const limitText = useLimitText();
  return useMemo(
    () => [
      {
        key: "name",
        title: c("name"),
        sort: (queue) => queue.name,
        render: (queue) => (
          <>
            {queue.name}
            <Faint>
              {isDefaultOfPool(queue) ? t("defaultOf", { pool: queue.pool }) : `${c("pool")} ${queue.pool}`}
            </Faint>
          </>
        ),
      },
      {
        key: "policy",
        title: t("policy"),
        sort: (queue) => queue.policy,
        render: (queue) => (
          <>
            {policyText(queue.policy)}
            <Faint>
              {[queue.preempts && t("preemptsShort"), queue.weight !== 1 && t("weightShort", { n: queue.weight })]
                .filter((one) => one !== false)
                .join(" · ")}
            </Faint>
          </>
        ),
      },
      {
        key: "blocking",
        title: t("blocking"),
        wide: true,
        sort: (queue) => queue.blocking,
        render: (queue) => (
          <Badge variant="default" tt="none" fw={500} miw="max-content">
            {t(queue.blocking)}
          </Badge>
        ),
      },
      { key: "placement", title: t("placement"), wide: true, render: (queue) => queue.placement },
      { key: "limits", title: t("limits"), wide: true, render: (queue) => limitText(queue) },
      {
        key: "who",
        title: t("who"),
        wide: true,
        render: (queue) => (
          <>
            {t("groupOfPool", { pool: queue.pool })}
            {queue.groups.length > 0 && <Faint>{t("andGroups", { groups: queue.groups.join(", ") })}</Faint>}
          </>
        ),
      },
      {
        key: "queued",
        title: t("queued"),
        numeric: true,
        sort: (queue) => queue.queued,
        render: (queue) => format.number(queue.queued),
      },
      {
        key: "running",
        title: t("running"),
        numeric: true,
        sort: (queue) => queue.running,
        render: (queue) => format.number(queue.running),
      },
      {
        key: "held",
        title: t("heldGpus"),
        numeric: true,
        sort: (queue) => queue.held_gpus,
        render: (queue) => <HeldBar queue={queue} />,
      },
    ],
    [t, c, format, policyText, limitText],
  );
}
