import { Button, Group } from "@mantine/core";
import { Plus, UserPlus } from "lucide-react";
import { useMemo, useState } from "react";

import { useAll } from "@/api/useAll";
import { useMe } from "@/app/session";
import { useFilters } from "@/app/useFilters";
import { BatchBar } from "@/pages/people/users/BatchBar";
import { CreateUser } from "@/pages/people/users/CreateUser";
import { EditUser } from "@/pages/people/users/EditUser";
import { Onboard } from "@/pages/people/users/Onboard";
import { OneTimePassword, type Secret } from "@/pages/people/users/OneTimePassword";
import { refusalsFor } from "@/pages/people/users/rules";
import { useUserActions } from "@/pages/people/users/useUserActions";
import { UserDrawer } from "@/pages/people/users/UserDrawer";
import { FILTERS as LIST_FILTERS, fits, UserFilters } from "@/pages/people/users/UserFilters";
import { UserTable } from "@/pages/people/users/UserTable";
import { texts } from "@/pages/people/users/texts";
import { PageHeader } from "@/parts/PageHeader";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { navigation } from "@/texts/navigation";
import { useTexts } from "@/texts/texts";

/** `open` and `edit` are names; `new` is "user" or "people" while some are made. */
const FILTERS = { ...LIST_FILTERS, open: "", edit: "", new: "" };

export default function UsersPage() {
  const t = useTexts(texts);
  const n = useTexts(navigation);
  const me = useMe();
  const [filters, setFilters] = useFilters(FILTERS);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [secret, setSecret] = useState<Secret>();
  const users = useAll("/users");
  const everybody = useMemo(() => users.data ?? [], [users.data]);
  const shown = useMemo(() => users.data?.filter((user) => fits(user, filters)), [users.data, filters]);
  const actions = useUserActions(everybody, {
    onEdit: (edit) => setFilters({ edit }),
    onSecret: setSecret,
    onDeleted: () => setFilters({ open: "" }),
  });
  const open = everybody.find((user) => user.name === filters.open);
  const edited = everybody.find((user) => user.name === filters.edit);
  return (
    <>
      <PageHeader title={n("users")} detail={shown === undefined ? undefined : t("count", { n: shown.length })}>
        <Button variant="default" leftSection={<UserPlus size={15} />} onClick={() => setFilters({ new: "people" })}>
          {t("onboard")}
        </Button>
        <Button leftSection={<Plus size={15} />} onClick={() => setFilters({ new: "user" })}>
          {t("create")}
        </Button>
      </PageHeader>
      <Group justify="space-between" mb="sm">
        <UserFilters users={everybody} filters={filters} onChange={setFilters} />
        <BatchBar chosen={everybody.filter((user) => selected.has(user.name))} onClear={() => setSelected(new Set())} />
      </Group>
      {users.error !== null ? (
        <ProblemNote error={users.error} onRetry={() => void users.refetch()} />
      ) : (
        <Panel p={0}>
          <UserTable
            users={shown}
            selected={selected}
            onSelect={setSelected}
            onOpen={(name) => setFilters({ open: name })}
            actions={actions}
          />
        </Panel>
      )}
      {filters.new === "user" && (
        <CreateUser
          taken={everybody.map((user) => user.name)}
          onClose={() => setFilters({ new: "" })}
          onCreated={(made) => {
            setFilters({ new: "" });
            setSecret(made);
          }}
        />
      )}
      {filters.new === "people" && <Onboard onClose={() => setFilters({ new: "" })} />}
      {filters.open !== "" && filters.edit === "" && users.data !== undefined && (
        <UserDrawer
          key={filters.open}
          name={filters.open}
          user={open}
          actions={open === undefined ? [] : actions(open)}
          onEdit={() => setFilters({ edit: filters.open })}
          onClose={() => setFilters({ open: "" })}
        />
      )}
      {edited !== undefined && (
        <EditUser
          key={edited.name}
          user={edited}
          roleRefusal={edited.role === "operator" ? refusalsFor(t, edited, everybody, me.name).weaken : undefined}
          onClose={() => setFilters({ edit: "" })}
        />
      )}
      {secret !== undefined && <OneTimePassword secret={secret} onClose={() => setSecret(undefined)} />}
    </>
  );
}
