import { describe, expect, it, vi } from "vitest";

import { together } from "@/api/together";

function list(data: readonly string[] | undefined, error: Error | null = null) {
  return { data, error, refetch: vi.fn(() => Promise.resolve()) };
}

describe("lists that are needed together", () => {
  it("are there when the last of them is", () => {
    expect(together(list(["a"]), list(undefined)).data).toBeUndefined();
    expect(together(list(["a"]), list([])).data).toEqual(["a"]);
  });
  it("fail with the first error, and ask again for what failed only", () => {
    const [pools, users] = [list(["a"]), list(undefined, new Error("no answer"))];
    const both = together(pools, users);
    expect(both.error).toBe(users.error);
    void both.refetch();
    expect(users.refetch).toHaveBeenCalledOnce();
    expect(pools.refetch).not.toHaveBeenCalled();
  });
  it("have no error while they load", () => expect(together(list(undefined)).error).toBeNull());
});
