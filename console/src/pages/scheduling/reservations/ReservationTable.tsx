/** The same as the calendar, in words: every reservation with what can be done with it. */
import { Group, Switch, Text } from "@mantine/core";
import { CalendarRange, Pencil, Trash2 } from "lucide-react";
import { useMemo } from "react";

import { useIsOperator } from "@/app/session";
import type { Reservation } from "@/pages/scheduling/reservations/calendar";
import { useSpoken } from "@/pages/scheduling/reservations/spoken";
import { texts } from "@/pages/scheduling/reservations/texts";
import { DataTable, Faint, type Column } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { Panel } from "@/parts/Panel";
import { RowMenu } from "@/parts/RowMenu";
import { StateBadge } from "@/parts/StateBadge";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

export interface ReservationTableProps {
  readonly reservations: readonly Reservation[] | undefined;
  readonly withOver: boolean;
  readonly onWithOver: (withOver: boolean) => void;
  readonly onOpen: (name: string) => void;
  readonly onEdit: (name: string) => void;
  readonly onDelete: (reservation: Reservation) => void;
}

export function ReservationTable(props: ReservationTableProps) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const isOperator = useIsOperator();
  const columns = useColumns();
  const { reservations, withOver } = props;
  const shown = useMemo(
    () => (withOver ? reservations : reservations?.filter((one) => one.state !== "over")),
    [reservations, withOver],
  );
  return (
    <Panel
      title={t("list")}
      tools={
        <Switch
          size="xs"
          label={t("withOver")}
          checked={withOver}
          onChange={(event) => props.onWithOver(event.currentTarget.checked)}
        />
      }
    >
      <DataTable
        label={t("list")}
        rows={shown}
        columns={columns}
        rowKey={(one) => one.name}
        onOpen={(one) => props.onOpen(one.name)}
        initialSort={{ key: "when", descending: false }}
        empty={<EmptyState icon={CalendarRange} title={t("empty")} hint={t("emptyHint")} />}
        actions={
          isOperator
            ? (one) => (
                <RowMenu
                  label={t("menuOf", { name: one.name })}
                  actions={[
                    { label: c("edit"), icon: Pencil, onClick: () => props.onEdit(one.name) },
                    { label: c("delete"), icon: Trash2, danger: true, onClick: () => props.onDelete(one) },
                  ]}
                />
              )
            : undefined
        }
      />
    </Panel>
  );
}

function useColumns(): readonly Column<Reservation>[] {
  const t = useTexts(texts);
  const c = useTexts(common);
  const spoken = useSpoken();
  return useMemo(
    () => [
      {
        key: "name",
        title: c("name"),
        sort: (one) => one.name,
        render: (one) => (
          <>
            {one.name}
            {one.note !== "" && <Faint>{one.note}</Faint>}
            <Text size="xs" c="dimmed" component="div" hiddenFrom="sm">
              {spoken.gpus(one)} · {spoken.when(one)}
            </Text>
          </>
        ),
      },
      { key: "state", title: c("state"), sort: (one) => one.state, render: (one) => <StateBadge state={one.state} /> },
      {
        key: "gpus",
        title: t("gpus"),
        wide: true,
        sort: (one) => one.gpu_count,
        render: (one) => (
          <>
            <span className="num">{spoken.gpus(one)}</span>
            <Faint>{one.pool}</Faint>
          </>
        ),
      },
      { key: "who", title: t("who"), wide: true, sort: spoken.who, render: (one) => spoken.who(one) },
      {
        key: "when",
        title: t("when"),
        wide: true,
        sort: (one) => one.since,
        render: (one) => (
          <Group gap={0} component="span">
            {spoken.when(one)}
          </Group>
        ),
      },
      {
        key: "use",
        title: t("use"),
        wide: true,
        sort: (one) => one.used_by_owners + one.lent,
        render: (one) => (
          <>
            {t("useText", { own: one.used_by_owners, lent: one.lent })}
            <Faint>{t(one.lends ? "lends" : "keeps")}</Faint>
          </>
        ),
      },
    ],
    [t, c, spoken],
  );
}
