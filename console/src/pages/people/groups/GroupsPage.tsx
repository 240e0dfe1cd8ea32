import { Button, SegmentedControl, Skeleton } from "@mantine/core";
import { Plus } from "lucide-react";

import { useAll } from "@/api/useAll";
import { useFilters } from "@/app/useFilters";
import { GroupBoard } from "@/pages/people/groups/GroupBoard";
import { GroupForm } from "@/pages/people/groups/GroupForm";
import { GroupTable } from "@/pages/people/groups/GroupTable";
import { texts } from "@/pages/people/groups/texts";
import { PageHeader } from "@/parts/PageHeader";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { navigation } from "@/texts/navigation";
import { useTexts } from "@/texts/texts";

/** `view` is list or board; `open` a group's name; `new` says that one is being made. */
const FILTERS = { view: "list", open: "", new: "" };

export default function GroupsPage() {
  const t = useTexts(texts);
  const n = useTexts(navigation);
  const [filters, setFilters] = useFilters(FILTERS);
  const groups = useAll("/groups");
  const users = useAll("/users");
  const pools = useAll("/pools");
  const quotas = useAll("/quotas");
  const failure = groups.error ?? users.error ?? pools.error ?? quotas.error;
  const open = groups.data?.find((group) => group.name === filters.open);
  const free = users.data?.filter((user) => user.group === null).map((user) => user.name) ?? [];
  const form = { groups: groups.data ?? [], pools: pools.data ?? [], free };
  const isReady = groups.data !== undefined && users.data !== undefined && pools.data !== undefined;
  return (
    <>
      <PageHeader title={n("groups")} detail={t("detail")}>
        <SegmentedControl
          size="xs"
          aria-label={t("view")}
          value={filters.view}
          onChange={(view) => setFilters({ view })}
          data={[
            { value: "list", label: t("list") },
            { value: "board", label: t("board") },
          ]}
        />
        <Button leftSection={<Plus size={15} />} onClick={() => setFilters({ new: "yes" })}>
          {t("create")}
        </Button>
      </PageHeader>
      {failure !== null && (
        <ProblemNote
          error={failure}
          onRetry={() => void Promise.all([groups, users, pools, quotas].map((one) => one.refetch()))}
        />
      )}
      {filters.view === "board" ? (
        groups.data !== undefined && users.data !== undefined ? (
          <GroupBoard groups={groups.data} users={users.data} />
        ) : (
          failure === null && <Skeleton h={360} />
        )
      ) : (
        failure === null && (
          <Panel p={0}>
            <GroupTable
              groups={quotas.data === undefined ? undefined : groups.data}
              quotas={quotas.data ?? []}
              onEdit={(name) => setFilters({ open: name })}
            />
          </Panel>
        )
      )}
      {isReady && filters.new !== "" && (
        <GroupForm group={undefined} {...form} onClose={() => setFilters({ new: "" })} />
      )}
      {isReady && open !== undefined && (
        <GroupForm key={open.name} group={open} {...form} onClose={() => setFilters({ open: "" })} />
      )}
    </>
  );
}
