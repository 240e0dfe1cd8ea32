/** A user is in one group at most, so moving is leaving one and joining another. Nobody is left in between. */
import { api, Problem, sent, type Schema } from "@/api/client";
import { problemOf } from "@/api/problem";
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

/** What a move changes the answers of. */
export const MOVE_TOUCHES = ["/users", "/groups", "/me"];

export async function moveUsers({ users, group }: UserMove): Promise<void> {
  const moving = users.filter((user) => user.group !== group);
  const left: [group: string, names: string[]][] = [];
  try {
    for (const from of new Set(moving.map((user) => user.group))) {
      if (from === null) continue;
      const names = moving.filter((user) => user.group === from).map((user) => user.name);
      await changeMembers(from, [], names);
      left.push([from, names]);
    }
    if (group !== null && moving.length > 0) {
      await changeMembers(
        group,
        moving.map((user) => user.name),
        [],
      );
    }
  } catch (error) {
    await putBack(left, problemOf(error));
  }
}

/** Into the groups that they came from; the first problem is told, with whoever could not be put back. */
async function putBack(left: readonly [string, string[]][], problem: Problem): Promise<never> {
  const answers = await Promise.allSettled(left.map(([group, names]) => changeMembers(group, names, [])));
  const lost = left.filter((_, at) => answers[at]?.status === "rejected").flatMap(([, names]) => names);
  if (lost.length === 0) throw problem;
  throw new Problem(
    problem.status,
    problem.title,
    `${problem.detail} (now in no group: ${lost.join(", ")})`,
    problem.kind,
    problem.fields,
    problem.numbers,
  );
}

function changeMembers(name: string, add: readonly string[], remove: readonly string[]): Promise<Schema<"GroupView">> {
  return sent(
    api.PATCH("/groups/{name}", {
      params: { path: { name } },
      body: { add_users: [...add], remove_users: [...remove] },
    }),
  );
}

/** As the lists look once they have moved. */
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
