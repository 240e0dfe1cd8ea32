import { describe, expect, it } from "vitest";

import { newItem } from "@/app/shell/inboxNotice";

function event(name: string, data: object) {
  return { name, id: "7", data: JSON.stringify(data) };
}

describe("new items of the inbox", () => {
  it("are events about the user that another user or the server caused", () => {
    const about = { owner: "ann", actor: "system", subject: "j-1" };
    expect(newItem(event("job.failed", about), "ann")).toBe("j-1");
    expect(newItem(event("job.failed", about), "bob")).toBeUndefined();
    expect(newItem(event("job.failed", { ...about, actor: "ann" }), "ann")).toBeUndefined();
    expect(newItem(event("job.checkpointed", about), "ann")).toBeUndefined();
  });
});
