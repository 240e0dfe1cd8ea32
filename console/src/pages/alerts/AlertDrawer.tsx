/** One alert with its numbers and its times; opened by `?open=ID`. */
import { Drawer, Skeleton, Stack, Table, Text } from "@mantine/core";
import type { ReactNode } from "react";

import { $api } from "@/api/client";
import { Standing, useQuantity, type AlertView } from "@/pages/alerts/alert";
import { useAlertText } from "@/pages/alerts/alertText";
import { texts } from "@/pages/alerts/texts";
import { Moment } from "@/parts/Moment";
import { ProblemNote } from "@/parts/ProblemNote";
import { StateBadge } from "@/parts/StateBadge";
import { SubjectLink } from "@/parts/SubjectLink";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

export function AlertDrawer({ id, onClose }: { id: string; onClose: () => void }) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const number = /^\d{1,15}$/.test(id) ? Number(id) : 0;
  const { data, error, refetch } = $api.useQuery("get", "/alerts/{alert}", { params: { path: { alert: number } } });
  return (
    <Drawer opened onClose={onClose} title={t("alert", { id })} closeButtonProps={{ "aria-label": c("close") }}>
      {error !== null && <ProblemNote error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Skeleton h={240} />}
      {data !== undefined && <Facts alert={data} />}
    </Drawer>
  );
}

function Facts({ alert }: { alert: AlertView }) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const quantity = useQuantity();
  const say = useAlertText();
  const facts: [string, ReactNode][] = [
    [t("severity"), <StateBadge key="severity" state={alert.severity} />],
    [c("state"), <Standing key="state" alert={alert} />],
    [t("rule"), alert.rule],
    [t("subject"), <SubjectLink key="subject" scope={alert.scope} name={alert.subject} />],
    [t("owner"), alert.owner],
    [t("value"), quantity(alert.value, alert.unit)],
    [t("worst"), quantity(alert.worst, alert.unit)],
    [t("pendingSince"), <Moment key="seen" at={alert.pending_since} />],
    [t("firedAt"), alert.fired_at === null ? null : <Moment key="fired" at={alert.fired_at} />],
    [t("ended"), alert.resolved_at === null ? null : <Moment key="ended" at={alert.resolved_at} />],
    [t("foldedInto"), alert.folded_into],
    [t("acknowledge"), alert.acknowledged_by === null ? null : t("acknowledgedBy", { name: alert.acknowledged_by })],
    [t("note"), alert.note === "" ? null : alert.note],
  ];
  return (
    <Stack>
      <Text>{say(alert)}</Text>
      <Table verticalSpacing={6} layout="fixed">
        <Table.Tbody>
          {facts
            .filter(([, value]) => value !== null)
            .map(([name, value]) => (
              <Table.Tr key={name}>
                <Table.Th scope="row" w="38%" fw={500} c="dimmed">
                  {name}
                </Table.Th>
                <Table.Td>{value}</Table.Td>
              </Table.Tr>
            ))}
        </Table.Tbody>
      </Table>
    </Stack>
  );
}
