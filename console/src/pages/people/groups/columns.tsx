import { Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";

import type { Schema } from "@/api/client";
import { texts } from "@/pages/people/groups/texts";
import { Faint, type Column } from "@/parts/DataTable";
import { common } from "@/texts/common";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

type GroupView = Schema<"GroupView">;

const NAMED = 6;

export function useGroupColumns(): readonly Column<GroupView>[] {
  const t = useTexts(texts);
  const c = useTexts(common);
  const format = useFormat();
  return useMemo(() => {
    return [
      {
        key: "name",
        title: c("name"),
        sort: (group) => group.name,
        render: (group) => (
          <>
            {group.name}
            {group.description !== "" && <Faint>{group.description}</Faint>}
          </>
        ),
      },
      {
        key: "pool",
        title: c("pool"),
        sort: (group) => group.pool,
        render: (group) =>
          group.pool === null ? (
            <Text size="sm" c="dimmed">
              {t("noPool")}
            </Text>
          ) : (
            <Link to="/pools" search={{ open: group.pool }}>
              {group.pool}
            </Link>
          ),
      },
      {
        key: "count",
        title: t("members"),
        numeric: true,
        sort: (group) => group.users_count,
        render: (group) => (
          <Link to="/users" search={{ group: group.name }}>
            {group.users_count}
          </Link>
        ),
      },
      {
        key: "members",
        title: t("users"),
        wide: true,
        render: (group) => (
          <Text size="sm" c={group.users_count === 0 ? "dimmed" : undefined} lineClamp={1}>
            {group.users_count === 0
              ? t("noMembers")
              : [
                  ...group.users.slice(0, NAMED),
                  ...(group.users_count > NAMED ? [t("more", { n: group.users_count - NAMED })] : []),
                ].join(", ")}
          </Text>
        ),
      },
      {
        key: "held",
        title: t("gpusHeld"),
        numeric: true,
        sort: (group) => group.gpus_held,
        render: (group) => format.number(group.gpus_held),
      },
      {
        key: "asked",
        title: t("gpusAsked"),
        numeric: true,
        wide: true,
        sort: (group) => group.gpus_asked,
        render: (group) => format.number(group.gpus_asked),
      },
    ];
  }, [t, c, format]);
}
