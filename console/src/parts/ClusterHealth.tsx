/** How each cluster is, where there are several; one that does not answer is told wherever it is looked at. */
import { Alert, Badge, Group } from "@mantine/core";
import { CircleCheck, TriangleAlert } from "lucide-react";

import { $api, type Schema } from "@/api/client";
import { words } from "@/parts/clusters.words";
import { useFormat } from "@/words/format";
import { useWords } from "@/words/words";

type Cluster = Schema<"ClusterView">;

/** A cluster that falls silent sends no news: it is asked. */
const ASK_MS = 15_000;

export function ClusterHealth() {
  const t = useWords(words);
  const { data } = $api.useQuery("get", "/clusters", {}, { refetchInterval: ASK_MS });
  const clusters = data?.items ?? [];
  const silent = clusters.filter((cluster) => !cluster.healthy);
  if (clusters.length < 2 && silent.length === 0) return null;
  return (
    <section aria-label={t("clusters")}>
      {clusters.length > 1 && (
        <Group gap="xs" mb="sm">
          {clusters.map((cluster) => (
            <ClusterBadge key={cluster.name} cluster={cluster} />
          ))}
        </Group>
      )}
      {silent.map((cluster) => (
        <Alert
          key={cluster.name}
          color="red"
          mb="sm"
          icon={<TriangleAlert size={18} aria-hidden />}
          title={t("trouble", { name: cluster.name })}
        >
          {t("troubleText", { detail: cluster.detail })}
        </Alert>
      ))}
    </section>
  );
}

function ClusterBadge({ cluster }: { cluster: Cluster }) {
  const t = useWords(words);
  const format = useFormat();
  const facts = [
    t("nodes", { ready: cluster.nodes_ready, n: cluster.nodes }),
    t("free", { free: format.number(cluster.gpus_free), n: cluster.gpus }),
    ...(cluster.gpus_taken > 0 ? [t("taken", { n: cluster.gpus_taken })] : []),
    ...(cluster.healthy && cluster.detail !== "" ? [cluster.detail] : []),
  ];
  const Icon = cluster.healthy ? CircleCheck : TriangleAlert;
  return (
    <Badge
      variant="light"
      size="lg"
      tt="none"
      fw={400}
      color={cluster.healthy ? "gray" : "red"}
      leftSection={<Icon size={14} aria-hidden />}
    >
      <b>{cluster.name}</b> · {t(cluster.healthy ? "answers" : "silent")} · {facts.join(" · ")}
    </Badge>
  );
}
