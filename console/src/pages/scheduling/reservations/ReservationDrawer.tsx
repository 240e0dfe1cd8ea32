/** One reservation: which GPUs, for whom, when, and how much of it is used. */
import { Badge, Box, Button, Drawer, Group, Stack, Text } from "@mantine/core";
import { Pencil, Trash2 } from "lucide-react";
import type { ReactNode } from "react";

import { useIsOperator } from "@/app/session";
import { SubjectLink } from "@/parts/SubjectLink";
import type { Reservation } from "@/pages/scheduling/reservations/calendar";
import { useSpoken } from "@/pages/scheduling/reservations/spoken";
import { texts } from "@/pages/scheduling/reservations/texts";
import { StateBadge } from "@/parts/StateBadge";
import { common } from "@/texts/common";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

export function ReservationDrawer({
  reservation,
  onEdit,
  onDelete,
  onClose,
}: {
  reservation: Reservation;
  onEdit: () => void;
  onDelete: () => void;
  onClose: () => void;
}) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const format = useFormat();
  const isOperator = useIsOperator();
  const spoken = useSpoken();
  const { name, pool, users, groups, note } = reservation;
  const facts: readonly (readonly [string, ReactNode])[] = [
    [t("gpus"), spoken.gpus(reservation)],
    [c("pool"), isOperator ? <SubjectLink scope="pool" name={pool} /> : pool],
    [t("people"), users.join(", ")],
    [t("groups"), groups.join(", ")],
    [t("when"), spoken.when(reservation)],
    [t("use"), t("useText", { own: reservation.used_by_owners, lent: reservation.lent })],
    [t("lendsLabel"), c(reservation.lends ? "yes" : "no")],
    [t("note"), note],
    [t("madeBy"), t("byAt", { user: reservation.created_by, at: format.dateTime(reservation.created_at) })],
    [t("where"), <Where key="where" nodes={reservation.nodes} />],
  ];
  return (
    <Drawer opened onClose={onClose} title={name} size="md" closeButtonProps={{ "aria-label": c("close") }}>
      <Stack gap="lg">
        <Group justify="space-between">
          <StateBadge state={reservation.state} />
          {isOperator && (
            <Group gap="xs">
              <Button variant="default" leftSection={<Pencil size={14} />} onClick={onEdit}>
                {c("edit")}
              </Button>
              <Button variant="default" c="red" leftSection={<Trash2 size={14} />} onClick={onDelete}>
                {c("delete")}
              </Button>
            </Group>
          )}
        </Group>
        <Box component="dl" m={0} style={{ display: "grid", gridTemplateColumns: "auto 1fr", gap: "8px 18px" }}>
          {facts
            .filter(([, value]) => value !== "")
            .map(([label, value]) => (
              <Fact key={label} label={label}>
                {value}
              </Fact>
            ))}
        </Box>
      </Stack>
    </Drawer>
  );
}

function Fact({ label, children }: { label: string; children: ReactNode }) {
  return (
    <>
      <Text component="dt" size="sm" c="dimmed">
        {label}
      </Text>
      <Text component="dd" size="sm" m={0} style={{ overflowWrap: "anywhere" }}>
        {children}
      </Text>
    </>
  );
}

function Where({ nodes }: { nodes: Reservation["nodes"] }) {
  return (
    <Stack gap={6} component="span">
      {Object.entries(nodes).map(([node, gpus]) => (
        <Group key={node} gap={6} component="span">
          <Text span size="sm">
            {node}
          </Text>
          {gpus.map((gpu) => (
            <Badge key={gpu} component="span" variant="default" tt="none" fw={400}>
              {gpu.replace(`${node}-`, "").replace(`${node}/`, "")}
            </Badge>
          ))}
        </Group>
      ))}
    </Stack>
  );
}
