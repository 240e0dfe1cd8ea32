import { Badge, Button, Group, Text, Tooltip } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { Pencil, Plus, Trash2, UserPlus } from "lucide-react";
import { useMemo } from "react";

import { useAll } from "@/api/useAll";
import { useFilters } from "@/app/useFilters";
import { AssignUsers } from "@/pages/people/permissions/AssignUsers";
import { FUNCTIONS, PermissionForm } from "@/pages/people/permissions/PermissionForm";
import {
  useDeletePermissionGroup,
  useDeleteRefusal,
  type PermissionGroup,
} from "@/pages/people/permissions/usePermissionActions";
import { functions, meanings, texts } from "@/pages/people/permissions/texts";
import { DataTable, Faint, type Column } from "@/parts/DataTable";
import { PageHeader } from "@/parts/PageHeader";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { RowMenu } from "@/parts/RowMenu";
import { common } from "@/texts/common";
import { navigation } from "@/texts/navigation";
import { useTexts } from "@/texts/texts";

/** `open` and `assign` are names; `new` says that one is being made. */
const FILTERS = { open: "", assign: "", new: "" };

export default function PermissionGroupsPage() {
  const t = useTexts(texts);
  const c = useTexts(common);
  const n = useTexts(navigation);
  const [filters, setFilters] = useFilters(FILTERS);
  const groups = useAll("/permission-groups");
  const columns = useColumns();
  const refusal = useDeleteRefusal();
  const remove = useDeletePermissionGroup();
  const named = (name: string) => groups.data?.find((group) => group.name === name);
  const [open, assigned] = [named(filters.open), named(filters.assign)];
  return (
    <>
      <PageHeader title={n("permissionGroups")} detail={t("detail")}>
        <Button leftSection={<Plus size={15} />} onClick={() => setFilters({ new: "yes" })}>
          {t("create")}
        </Button>
      </PageHeader>
      {groups.error !== null ? (
        <ProblemNote error={groups.error} onRetry={() => void groups.refetch()} />
      ) : (
        <Panel p={0}>
          <DataTable
            label={t("label")}
            rows={groups.data}
            columns={columns}
            rowKey={(group) => group.name}
            onOpen={(group) => setFilters({ open: group.name })}
            actions={(group) => (
              <RowMenu
                label={t("actionsOf", { name: group.name })}
                actions={[
                  { label: c("edit"), icon: Pencil, onClick: () => setFilters({ open: group.name }) },
                  { label: t("assign"), icon: UserPlus, onClick: () => setFilters({ assign: group.name }) },
                  {
                    label: c("delete"),
                    icon: Trash2,
                    danger: true,
                    refusal: refusal(group),
                    onClick: () => remove(group),
                  },
                ]}
              />
            )}
          />
        </Panel>
      )}
      {filters.new !== "" && groups.data !== undefined && (
        <PermissionForm
          group={undefined}
          taken={groups.data.map((group) => group.name)}
          onClose={() => setFilters({ new: "" })}
        />
      )}
      {open !== undefined && (
        <PermissionForm key={open.name} group={open} taken={[]} onClose={() => setFilters({ open: "" })} />
      )}
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
  const f = useTexts(functions);
  const m = useTexts(meanings);
  if (group.functions.length === 0)
    return (
      <Text size="sm" c="dimmed">
        {t("nothing")}
      </Text>
    );
  if (group.functions.length === FUNCTIONS.length)
    return (
      <Badge variant="light" tt="none" fw={500}>
        {t("everything")}
      </Badge>
    );
  return (
    <Group gap={4}>
      {group.functions.map((name) => (
        <Tooltip key={name} label={m(name)}>
          <Badge variant="light" color="gray" tt="none" fw={500}>
            {f(name)}
          </Badge>
        </Tooltip>
      ))}
    </Group>
  );
}
