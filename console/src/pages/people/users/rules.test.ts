import { describe, expect, it } from "vitest";

import { isLastOperator, refusalsFor, type User } from "@/pages/people/users/rules";
import { texts } from "@/pages/people/users/texts";
import { say } from "@/texts/texts";

const t = say(texts, "en");

function user(name: string, more: Partial<User> = {}): User {
  return { name, role: "scientist", disabled: false, active_jobs: 0, ...more } as User;
}

const ROOT = user("root", { role: "operator" });
const SECOND = user("second", { role: "operator" });

describe("what an operator can do with a user", () => {
  it("is everything with a scientist without jobs", () =>
    expect(refusalsFor(t, user("ann"), [ROOT, user("ann")], "root")).toEqual({}));
  it("is not deletion while jobs are active", () => {
    const busy = refusalsFor(t, user("ann", { active_jobs: 2 }), [ROOT], "root");
    expect(busy.delete).toBe(t("hasJobs", { n: 2 }));
    expect(busy.weaken).toBeUndefined();
  });
  it("is nothing that would leave the installation without an operator", () => {
    expect(isLastOperator(ROOT, [ROOT, user("ann"), { ...SECOND, disabled: true }])).toBe(true);
    expect(refusalsFor(t, ROOT, [ROOT], "second").weaken).toBe(t("lastOperator"));
    expect(isLastOperator(ROOT, [ROOT, SECOND])).toBe(false);
  });
  it("is neither disabling, deleting nor resetting the own account", () => {
    const own = refusalsFor(t, ROOT, [ROOT, SECOND], "root");
    expect([own.weaken, own.delete, own.reset]).toEqual([t("ownAccount"), t("ownAccount"), t("ownPassword")]);
  });
});
