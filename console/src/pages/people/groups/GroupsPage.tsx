import { together } from "@/api/together";
import { useAll } from "@/api/useAll";
import { useGroupColumns } from "@/pages/people/groups/columns";
import { GroupBoard } from "@/pages/people/groups/GroupBoard";
import { GroupForm } from "@/pages/people/groups/GroupForm";
import { useDeleteGroup, useDeleteRefusal } from "@/pages/people/groups/useGroupActions";
import { texts } from "@/pages/people/groups/texts";
import { CatalogPage } from "@/parts/CatalogPage";
import { navigation } from "@/texts/navigation";
import { useTexts } from "@/texts/texts";

const NONE: readonly [] = [];

export default function GroupsPage() {
  const t = useTexts(texts);
  const n = useTexts(navigation);
  const groups = useAll("/groups");
  const users = useAll("/users");
  const pools = useAll("/pools");
  const remove = useDeleteGroup();
  const free = users.data?.filter((user) => user.group === null).map((user) => user.name) ?? [];
  return (
    <CatalogPage
      title={n("groups")}
      detail={t("detail")}
      label={t("label")}
      createLabel={t("create")}
      query={together(groups, users, pools)}
      board={{
        label: t("board"),
        content: () => <GroupBoard groups={groups.data ?? NONE} users={users.data ?? NONE} />,
      }}
      columns={useGroupColumns()}
      menuLabel={(name) => t("actionsOf", { name })}
      onDelete={([group]) => group !== undefined && remove(group)}
      refusal={useDeleteRefusal()}
      form={({ row, taken, onClose }) => (
        <GroupForm key={row?.name} group={row} taken={taken} pools={pools.data ?? NONE} free={free} onClose={onClose} />
      )}
    />
  );
}
