/** A user is in one group at most, so moving is leaving one and joining another: the server does both at once. */
import { api, sent, type Schema } from "@/api/client";
import type { Cache } from "@/api/useAction";

export interface Mover {
  readonly name: string;
  readonly group: string | null;
}

export interface UserMove {
  readonly users: readonly Mover[];
  /** Null: out of every group. */
  readonly group: string | null;
}

/** The API paths whose answers a move of users changes. */
export const MOVE_TOUCHES = ["/users", "/groups", "/me"];

export async function moveUsers({ users, group }: UserMove): Promise<void> {
  const moving = users.filter((user) => user.group !== group);
  if (moving.length === 0) return;
  if (group !== null) {
    await changeMembers(group, { move_users: moving.map((user) => user.name) });
    return;
  }
  for (const from of new Set(moving.map((user) => user.group))) {
    if (from === null) continue;
    await changeMembers(from, { remove_users: moving.filter((user) => user.group === from).map((user) => user.name) });
  }
}

function changeMembers(name: string, body: Partial<Schema<"GroupEdit">>): Promise<Schema<"GroupView">> {
  return sent(api.PATCH("/groups/{name}", { params: { path: { name } }, body }));
}

/** Updates the cached lists to the state after the move. */
export function showMoved(cache: Cache, { users, group }: UserMove): void {
  const names = new Set(users.map((user) => user.name));
  cache.changeItems<Schema<"UserView">>(
    "/users",
    (user) => names.has(user.name),
    (user) => ({ ...user, group }),
  );
  cache.changeItems<Schema<"GroupView">>(
    "/groups",
    () => true,
    (one) => {
      const stay = one.users.filter((user) => !names.has(user));
      const members = one.name === group ? [...stay, ...names].sort() : stay;
      return { ...one, users: members, users_count: members.length };
    },
  );
}
