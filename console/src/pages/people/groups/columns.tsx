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
type Usage = Schema<"QuotaUsageView">;

const NAMED = 6;

export function useGroupColumns(quotas: readonly Usage[]): readonly Column<GroupView>[] {
  const t = useTexts(texts);
  const c = useTexts(common);
  const format = useFormat();
  return useMemo(() => {
    const usages = new Map(quotas.map((usage) => [usage.user, usage]));
    const gpus = (group: GroupView) => {
      const held = group.users.flatMap((user) => Object.values(usages.get(user)?.kinds ?? {}).map((kind) => kind.gpus));
      const limits = held.map((one) => one.limit);
      return {
        held: held.reduce((sum, one) => sum + one.held, 0),
        limit: limits.includes(null) ? null : limits.reduce((sum: number, one) => sum + (one ?? 0), 0),
      };
    };
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
        title: c("user"),
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
        key: "quota",
        title: t("quota"),
        numeric: true,
        wide: true,
        sort: (group) => gpus(group).held,
        render: (group) => {
          if (group.users_count === 0) return "–";
          const { held, limit } = gpus(group);
          return limit === null
            ? t("quotaOpen", { held: format.number(held) })
            : t("quotaOf", { held: format.number(held), limit: format.number(limit) });
        },
      },
    ];
  }, [quotas, t, c, format]);
}
