import { Group, Text } from "@mantine/core";
import { useMemo } from "react";

import type { Reservation } from "@/pages/scheduling/reservations/calendar";
import { useSpoken } from "@/pages/scheduling/reservations/spoken";
import { texts } from "@/pages/scheduling/reservations/texts";
import { Faint, type Column } from "@/parts/DataTable";
import { StateBadge } from "@/parts/StateBadge";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

export function useReservationColumns(): readonly Column<Reservation>[] {
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
