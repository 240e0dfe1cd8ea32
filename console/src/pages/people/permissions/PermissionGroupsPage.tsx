import { Badge, Group, Text, Tooltip } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { UserPlus } from "lucide-react";
import { useMemo } from "react";

import { useOptions } from "@/api/options";
import { useAll } from "@/api/useAll";
import { useFilters } from "@/app/useFilters";
import { AssignUsers } from "@/pages/people/permissions/AssignUsers";
import { PermissionForm } from "@/pages/people/permissions/PermissionForm";
import {
  useDeletePermissionGroup,
  useDeleteRefusal,
  type PermissionGroup,
} from "@/pages/people/permissions/usePermissionActions";
import { functions, meanings, texts } from "@/pages/people/permissions/texts";
import { CatalogPage } from "@/parts/CatalogPage";
import { Faint, type Column } from "@/parts/DataTable";
import { common } from "@/texts/common";
import { navigation } from "@/texts/navigation";
import { useTextOr, useTexts } from "@/texts/texts";

/** The permission group that users are assigned to. */
const FILTERS = { assign: "" };

export default function PermissionGroupsPage() {
  const t = useTexts(texts);
  const n = useTexts(navigation);
  const [filters, setFilters] = useFilters(FILTERS);
  const groups = useAll("/permission-groups");
  const remove = useDeletePermissionGroup();
  const assigned = groups.data?.find((group) => group.name === filters.assign);
  return (
    <>
      <CatalogPage
        title={n("permissionGroups")}
        detail={t("detail")}
        label={t("label")}
        createLabel={t("create")}
        query={groups}
        columns={useColumns()}
        menuLabel={(name) => t("actionsOf", { name })}
        actions={({ name }) => [{ label: t("assign"), icon: UserPlus, onClick: () => setFilters({ assign: name }) }]}
        onDelete={([group]) => group !== undefined && remove(group.name)}
        refusal={useDeleteRefusal()}
        form={({ row, taken, onClose }) => (
          <PermissionForm key={row?.name} group={row} taken={taken} onClose={onClose} />
        )}
      />
      {assigned !== undefined && (
        <AssignUsers key={assigned.name} group={assigned} onClose={() => setFilters({ assign: "" })} />
      )}
    </>
  );
}

const NAMED = 6;

function useColumns(): readonly Column<PermissionGroup>[] {
  const t = useTexts(texts);
  const c = useTexts(common);
  return useMemo(
    () => [
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
      { key: "allows", title: t("allows"), wide: true, render: (group) => <Allowed group={group} /> },
      {
        key: "count",
        title: t("members"),
        numeric: true,
        sort: (group) => group.users_count,
        render: (group) => (
          <Link to="/users" search={{ permission: group.name }}>
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
    ],
    [t, c],
  );
}

function Allowed({ group }: { group: PermissionGroup }) {
  const t = useTexts(texts);
  const options = useOptions();
  const f = useTextOr(functions);
  const m = useTextOr(meanings);
  if (group.functions.length === 0)
    return (
      <Text size="sm" c="dimmed">
        {t("nothing")}
      </Text>
    );
  if (group.functions.length === options.functions.length)
    return (
      <Badge variant="light" tt="none" fw={500}>
        {t("everything")}
      </Badge>
    );
  return (
    <Group gap={4}>
      {group.functions.map((name) => (
        <Tooltip key={name} label={m(name, options.functions.find((one) => one.name === name)?.description)}>
          <Badge variant="light" color="gray" tt="none" fw={500}>
            {f(name)}
          </Badge>
        </Tooltip>
      ))}
    </Group>
  );
}
