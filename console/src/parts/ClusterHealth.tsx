/** How each cluster is, where there are several: a click narrows the page to it. A cluster that does not answer is always shown. */
import { Alert, Badge, Group, Text, UnstyledButton } from "@mantine/core";
import { CircleCheck, TriangleAlert } from "lucide-react";

import { useCluster, useClusters, useSetCluster, type Cluster } from "@/app/cluster";
import classes from "@/parts/ClusterHealth.module.css";
import { texts } from "@/parts/clusters.texts";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

export default function ClusterHealth() {
  const t = useTexts(texts);
  const format = useFormat();
  const clusters = useClusters() ?? [];
  const silent = clusters.filter((cluster) => !cluster.healthy);
  if (clusters.length < 2 && silent.length === 0) return null;
  return (
    <section aria-label={t("clusters")}>
      {clusters.length > 1 && (
        <div className={classes.cards}>
          {clusters.map((cluster) => (
            <ClusterCard key={cluster.name} cluster={cluster} />
          ))}
        </div>
      )}
      {silent.map(({ name, since, detail }) => (
        <Alert
          key={name}
          color="red"
          mb="sm"
          icon={<TriangleAlert size={18} aria-hidden />}
          title={since === null ? t("trouble", { name }) : t("troubleSince", { name, at: format.dayTime(since) })}
        >
          {t("troubleText", { detail })}
        </Alert>
      ))}
    </section>
  );
}

function ClusterCard({ cluster }: { cluster: Cluster }) {
  const t = useTexts(texts);
  const format = useFormat();
  const chosen = useCluster();
  const setCluster = useSetCluster();
  const { name, healthy, since } = cluster;
  const Icon = healthy ? CircleCheck : TriangleAlert;
  const facts = [
    t("nodes", { ready: cluster.nodes_ready, n: cluster.nodes }),
    t("free", { free: format.number(cluster.gpus_free), n: cluster.gpus }),
    ...(cluster.gpus_taken > 0 ? [t("taken", { n: cluster.gpus_taken })] : []),
  ];
  return (
    <UnstyledButton
      className={`panel ${classes.card}`}
      data-silent={healthy ? undefined : true}
      aria-pressed={chosen === name}
      onClick={() => setCluster(chosen === name ? "" : name)}
    >
      <Group justify="space-between" wrap="nowrap" gap="xs">
        <Group gap={8} wrap="nowrap" miw={0}>
          <Icon size={16} aria-hidden color={healthy ? "var(--corral-good)" : "var(--corral-bad)"} />
          <Text fw={600} truncate>
            {name}
          </Text>
          <Badge variant="light" color="gray" size="sm" tt="none" fw={500} style={{ flexShrink: 0 }}>
            {t(cluster.engine === "slurm" ? "slurm" : "local")}
          </Badge>
        </Group>
        <Text size="xs" c={healthy ? "dimmed" : "var(--mantine-color-error)"} style={{ flexShrink: 0 }}>
          {since === null ? t("notAsked") : t(healthy ? "answersSince" : "silentSince", { at: format.dayTime(since) })}
        </Text>
      </Group>
      <Bar cluster={cluster} />
      <Text size="xs" c="dimmed">
        {facts.join(" · ")}
      </Text>
      {healthy && cluster.detail !== "" && (
        <Text size="xs" c="dimmed">
          {cluster.detail}
        </Text>
      )}
    </UnstyledButton>
  );
}

/** A bar of the GPUs that jobs hold, then those that others have taken; the text below has the same numbers. */
function Bar({ cluster: { gpus, gpus_allocated: held, gpus_taken: taken } }: { cluster: Cluster }) {
  const width = (part: number) => ({ width: `${gpus === 0 ? 0 : (100 * part) / gpus}%` });
  return (
    <div className={classes.bar} aria-hidden>
      <span className={classes.held} style={width(held)} />
      <span className={classes.taken} style={width(taken)} />
    </div>
  );
}
