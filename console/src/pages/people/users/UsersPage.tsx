import { Button } from "@mantine/core";
import { UserPlus, Users } from "lucide-react";
import { useMemo, useState } from "react";

import { useAll } from "@/api/useAll";
import { useMe } from "@/app/session";
import { useFilters } from "@/app/useFilters";
import { BatchBar } from "@/pages/people/users/BatchBar";
import { useUserColumns } from "@/pages/people/users/columns";
import { CreateUser } from "@/pages/people/users/forms/CreateUser";
import { EditUser } from "@/pages/people/users/forms/EditUser";
import { Onboard } from "@/pages/people/users/forms/Onboard";
import { OneTimePassword, type Secret } from "@/pages/people/users/forms/OneTimePassword";
import { refusalsFor, type User } from "@/pages/people/users/rules";
import { useUserActions } from "@/pages/people/users/useUserActions";
import { UserDrawer } from "@/pages/people/users/UserDrawer";
import { FILTERS as LIST_FILTERS, fits, UserFilters } from "@/pages/people/users/UserFilters";
import { texts } from "@/pages/people/users/texts";
import { CatalogPage } from "@/parts/CatalogPage";
import { navigation } from "@/texts/navigation";
import { useTexts } from "@/texts/texts";

/** `new` is "people" while users of a provider are on-boarded. */
const FILTERS = { ...LIST_FILTERS, open: "", edit: "", new: "" };
const NONE: readonly User[] = [];

export default function UsersPage() {
  const t = useTexts(texts);
  const n = useTexts(navigation);
  const me = useMe();
  const [filters, setFilters] = useFilters(FILTERS);
  const [secret, setSecret] = useState<Secret>();
  const users = useAll("/users");
  const all = users.data ?? NONE;
  const shown = useMemo(() => users.data?.filter((user) => fits(user, filters)), [users.data, filters]);
  const actions = useUserActions(all, {
    onEdit: (edit) => setFilters({ edit, open: "" }),
    onSecret: setSecret,
    onDeleted: () => setFilters({ open: "" }),
  });
  return (
    <>
      <CatalogPage
        title={n("users")}
        detail={shown === undefined ? undefined : t("count", { n: shown.length })}
        label={t("label")}
        createLabel={t("create")}
        tools={
          <Button variant="default" leftSection={<UserPlus size={15} />} onClick={() => setFilters({ new: "people" })}>
            {t("onboard")}
          </Button>
        }
        query={users}
        above={<UserFilters users={all} filters={filters} onChange={setFilters} />}
        shown={shown}
        columns={useUserColumns()}
        empty={{ icon: Users, title: t("emptyTitle"), hint: t("emptyHint") }}
        menuLabel={(name) => t("actionsOf", { name })}
        menu={actions}
        batch={(chosen, onClear) => <BatchBar chosen={chosen} onClear={onClear} />}
        form={({ row, taken, onClose }) =>
          filters.new === "people" ? (
            <Onboard onClose={onClose} />
          ) : row === undefined ? (
            <CreateUser
              taken={taken}
              onClose={onClose}
              onCreated={(made) => {
                onClose();
                setSecret(made);
              }}
            />
          ) : (
            <EditUser
              key={row.name}
              user={row}
              roleRefusal={row.role === "operator" ? refusalsFor(t, row, all, me.name).weaken : undefined}
              onClose={onClose}
            />
          )
        }
        drawer={({ name, row, onEdit, onClose }) => (
          <UserDrawer
            key={name}
            name={name}
            user={row}
            actions={row === undefined ? [] : actions(row)}
            onEdit={onEdit}
            onClose={onClose}
          />
        )}
      />
      {secret !== undefined && <OneTimePassword secret={secret} onClose={() => setSecret(undefined)} />}
    </>
  );
}
