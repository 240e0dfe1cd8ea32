import { Badge } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { ListOrdered, Waypoints } from "lucide-react";
import { useMemo } from "react";

import { useAll } from "@/api/useAll";
import { isDefaultOfPool, type Queue } from "@/pages/scheduling/queues/draft";
import { HeldBar } from "@/pages/scheduling/queues/HeldBar";
import { QueueForm } from "@/pages/scheduling/queues/QueueForm";
import { useDeleteQueues, useRefusal } from "@/pages/scheduling/queues/useQueueAdmin";
import { useLimitText, usePolicyText } from "@/pages/scheduling/queues/useQueueTexts";
import { texts } from "@/pages/scheduling/queues/texts";
import { CatalogPage } from "@/parts/CatalogPage";
import { Faint, type Column } from "@/parts/DataTable";
import { common } from "@/texts/common";
import { useFormat } from "@/texts/format";
import { navigation } from "@/texts/navigation";
import { useTexts } from "@/texts/texts";

export default function QueuesPage() {
  const t = useTexts(texts);
  const n = useTexts(navigation);
  const navigate = useNavigate();
  return (
    <CatalogPage
      title={n("queues")}
      detail={t("detail")}
      createLabel={t("create")}
      query={useAll("/queues")}
      columns={useQueueColumns()}
      empty={{ icon: Waypoints, title: t("empty"), hint: t("emptyHint") }}
      menuLabel={(name) => t("menuOf", { name })}
      actions={({ name }) => [
        {
          label: t("showOrder"),
          icon: ListOrdered,
          onClick: () => void navigate({ to: "/queue", search: { queue: name } }),
        },
      ]}
      onDelete={useDeleteQueues()}
      refusal={useRefusal()}
      canSelect
      batchRefusal={(names) => t("cannotSome", { names })}
      form={({ row, taken, onClose }) => <QueueForm key={row?.name} queue={row} taken={taken} onClose={onClose} />}
    />
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
