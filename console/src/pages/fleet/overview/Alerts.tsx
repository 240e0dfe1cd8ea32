import { Group, Skeleton, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { ShieldCheck } from "lucide-react";
import { memo } from "react";

import { $api, type Schema } from "@/api/client";
import { useAlertText } from "@/pages/alerts/alertText";
import { shownAlerts } from "@/pages/alerts/groups";
import classes from "@/pages/fleet/overview/Overview.module.css";
import { texts } from "@/pages/fleet/overview/texts";
import { EmptyState } from "@/parts/EmptyState";
import { Moment } from "@/parts/Moment";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { StateBadge } from "@/parts/StateBadge";
import { useTexts } from "@/texts/texts";

const MOST = 5;
const READ = 100;
const WEIGHT = { critical: 0, warning: 1, info: 2 } as const;

/** The firing alerts, the worst first, updated live. */
export const Alerts = memo(function Alerts() {
  const t = useTexts(texts);
  const { data, error, refetch } = $api.useQuery("get", "/alerts", {
    params: { query: { state: ["firing"], limit: READ } },
  });
  // As on the page of alerts: what another alert explains has no line of its own.
  const alerts =
    data === undefined ? undefined : shownAlerts(data.items, { q: "", severity: "", rule: "", grouped: "yes" });
  const worst = alerts?.toSorted((left, right) => WEIGHT[left.severity] - WEIGHT[right.severity]).slice(0, MOST);
  return (
    <Panel
      title={t("firing")}
      tools={
        <Link to="/alerts" className={classes.link}>
          <Text size="xs">{t("allAlerts")}</Text>
        </Link>
      }
    >
      {error !== null && <ProblemNote error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Skeleton h={80} />}
      {worst?.length === 0 && <EmptyState icon={ShieldCheck} title={t("nothingFires")} hint={t("nothingFiresHint")} />}
      <ul className={classes.list}>
        {worst?.map((alert) => (
          <Firing key={alert.id} alert={alert} />
        ))}
      </ul>
    </Panel>
  );
});

function Firing({ alert }: { alert: Schema<"AlertView"> }) {
  const say = useAlertText();
  return (
    <li className={classes.row}>
      <Group justify="space-between" wrap="nowrap" gap="xs">
        <StateBadge state={alert.severity} />
        <Text size="xs" c="dimmed">
          <Moment at={alert.fired_at} />
        </Text>
      </Group>
      <Text size="sm" mt={2} lineClamp={2}>
        <Link to="/alerts" search={{ open: String(alert.id) }} className={classes.link}>
          {say(alert)}
        </Link>
      </Text>
    </li>
  );
}
