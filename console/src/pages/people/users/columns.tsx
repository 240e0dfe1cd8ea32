import { Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";

import { AccountBadge, RoleBadge } from "@/pages/people/users/badges";
import type { User } from "@/pages/people/users/rules";
import { texts } from "@/pages/people/users/texts";
import { Faint, type Column } from "@/parts/DataTable";
import { Moment } from "@/parts/Moment";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

export function useUserColumns(): readonly Column<User>[] {
  const t = useTexts(texts);
  const c = useTexts(common);
  return useMemo(
    () => [
      {
        key: "name",
        title: c("user"),
        sort: (user) => user.name,
        render: (user) => (
          <>
            {user.name}
            {(user.display_name !== "" || user.email !== "") && (
              <Faint>{[user.display_name, user.email].filter((text) => text !== "").join(" · ")}</Faint>
            )}
          </>
        ),
      },
      {
        key: "role",
        title: t("role"),
        wide: true,
        sort: (user) => user.role,
        render: (user) => <RoleBadge role={user.role} />,
      },
      {
        key: "group",
        title: c("group"),
        sort: (user) => user.group,
        render: (user) =>
          user.group === null ? (
            <Text size="sm" c="dimmed">
              {t("noGroup")}
            </Text>
          ) : (
            <Link to="/groups" search={{ open: user.group }}>
              {user.group}
            </Link>
          ),
      },
      {
        key: "permission",
        title: t("permissionGroup"),
        wide: true,
        sort: (user) => user.permission_group,
        render: (user) => (
          <Link to="/permission-groups" search={{ open: user.permission_group }}>
            {user.permission_group}
          </Link>
        ),
      },
      {
        key: "provider",
        title: t("provider"),
        wide: true,
        sort: (user) => user.provider,
        render: (user) => (user.provider === "local" ? t("local") : user.provider),
      },
      {
        key: "jobs",
        title: t("activeJobs"),
        numeric: true,
        wide: true,
        sort: (user) => user.active_jobs,
        render: (user) =>
          user.active_jobs === 0 ? (
            "0"
          ) : (
            <Link to="/jobs" search={{ user: user.name }}>
              {user.active_jobs}
            </Link>
          ),
      },
      {
        key: "seen",
        title: t("lastSeen"),
        wide: true,
        sort: (user) => user.last_seen_at,
        render: (user) => (user.last_seen_at === null ? t("never") : <Moment at={user.last_seen_at} />),
      },
      {
        key: "state",
        title: t("state"),
        wide: true,
        sort: (user) => (user.disabled ? 1 : 0),
        render: (user) => <AccountBadge user={user} />,
      },
    ],
    [t, c],
  );
}
