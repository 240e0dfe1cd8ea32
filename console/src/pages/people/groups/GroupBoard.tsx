/** A column per group, and one for those in none; users are moved between them. */
import { Badge, Group, Text, TextInput } from "@mantine/core";
import { Search } from "lucide-react";
import { useCallback, useMemo, useState } from "react";

import type { Schema } from "@/api/client";
import { useFilters } from "@/app/useFilters";
import { MoveUsersDialog } from "@/pages/people/groups/MoveUsersDialog";
import { texts } from "@/pages/people/groups/texts";
import { texts as userTexts } from "@/pages/people/users/texts";
import { Board } from "@/parts/board/Board";
import type { BoardColumn, Tile } from "@/parts/board/types";
import { useTexts } from "@/texts/texts";

type User = Schema<"UserView">;
type GroupView = Schema<"GroupView">;

const FILTERS = { q: "" };
/** No group can be called so. */
const NONE = ":none";

export function GroupBoard({ groups, users }: { groups: readonly GroupView[]; users: readonly User[] }) {
  const t = useTexts(texts);
  const [filters, setFilters] = useFilters(FILTERS);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [move, setMove] = useState<{ names: readonly string[]; column: string }>();
  const columns = useColumns(groups, users, filters.q);
  const titleOf = useCallback((column: string) => (column === NONE ? t("noGroup") : column), [t]);
  const refusal = useCallback(
    (names: readonly string[], column: string) => {
      const isHere = users.every((user) => !names.includes(user.name) || (user.group ?? NONE) === column);
      return isHere ? t("sameHere", { group: titleOf(column) }) : undefined;
    },
    [users, t, titleOf],
  );
  const describe = useCallback((n: number) => t("userCount", { n }), [t]);
  return (
    <>
      <TextInput
        size="xs"
        w={240}
        aria-label={t("searchUsers")}
        placeholder={t("searchUsers")}
        leftSection={<Search size={14} />}
        value={filters.q}
        onChange={(event) => setFilters({ q: event.currentTarget.value })}
      />
      <Board
        wide
        columns={columns}
        selected={selected}
        onSelect={setSelected}
        refusal={refusal}
        onMove={(names, column) => setMove({ names, column })}
        describe={describe}
      />
      {move !== undefined && (
        <MoveUsersDialog
          users={users.filter((user) => move.names.includes(user.name))}
          group={move.column === NONE ? null : move.column}
          groups={groups}
          onClose={() => setMove(undefined)}
          onMoved={() => setSelected(new Set())}
        />
      )}
    </>
  );
}

function useColumns(groups: readonly GroupView[], users: readonly User[], q: string): readonly BoardColumn[] {
  const t = useTexts(texts);
  const u = useTexts(userTexts);
  return useMemo(() => {
    const text = q.trim().toLowerCase();
    const column = (id: string, title: string, pool: string | null): BoardColumn => {
      const own = users.filter((user) => (user.group ?? NONE) === id);
      const shown = own.filter((user) =>
        [user.name, user.display_name].some((one) => one.toLowerCase().includes(text)),
      );
      const jobs = (user: User) => (user.active_jobs > 0 ? t("jobs", { n: user.active_jobs }) : "");
      // Begins with what is to be seen, so that it can be said to be clicked.
      const label = (user: User) =>
        t("userLabel", {
          text: [user.name, user.display_name, jobs(user)].filter((part) => part !== "").join(" "),
          role: u(user.role),
        });
      return {
        id,
        title,
        detail: pool === null ? t("columnNoPool", { n: own.length }) : t("columnDetail", { n: own.length, pool }),
        rows: shown.map((user) => ({ key: user.name, tiles: [tileOf(user, label(user), jobs(user))] })),
        empty: own.length === 0 ? t("emptyColumn") : t("emptyFiltered"),
      };
    };
    return [...groups.map((group) => column(group.name, group.name, group.pool)), column(NONE, t("noGroup"), null)];
  }, [groups, users, q, t, u]);
}

function tileOf(user: User, label: string, jobs: string): Tile {
  return {
    id: user.name,
    label,
    tone: "free",
    content: (
      <Group justify="space-between" w="100%" wrap="nowrap" gap="xs">
        <div style={{ minWidth: 0 }}>
          <Text size="sm" fw={500} truncate>
            {user.name}
          </Text>
          {user.display_name !== "" && (
            <Text size="xs" c="dimmed" truncate>
              {user.display_name}
            </Text>
          )}
        </div>
        {jobs !== "" && (
          <Badge variant="default" tt="none" fw={500} style={{ flexShrink: 0 }}>
            {jobs}
          </Badge>
        )}
      </Group>
    ),
  };
}
