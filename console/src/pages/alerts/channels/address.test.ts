import { describe, expect, it } from "vitest";

import { addressOf, isHook, KINDS, NEEDED, NO_PARTS } from "@/pages/alerts/channels/address";

describe("the address of a channel", () => {
  it("of mail has the account, the receivers and the sender", () => {
    const parts = { ...NO_PARTS, host: "mail.example.org", port: "587", account: "ops@lab", password: "a/b" };
    expect(addressOf("mail", { ...parts, receivers: "a@x.org, b@x.org", sender: "corral@x.org" })).toBe(
      "mailtos://ops%40lab:a%2Fb@mail.example.org:587?to=a%40x.org%2Cb%40x.org&from=corral%40x.org",
    );
  });
  it("of mail without encryption says so", () =>
    expect(addressOf("mail", { ...NO_PARTS, host: "mail", receivers: "a@x.org", encrypted: false })).toBe(
      "mailto://mail?to=a%40x.org&mode=insecure",
    ));
  it("of a webhook is its address as JSON", () => {
    expect(addressOf("webhook", { ...NO_PARTS, hook: " https://x.org/hook " })).toBe("jsons://x.org/hook");
    expect(addressOf("webhook", { ...NO_PARTS, hook: "http://x.org" })).toBe("json://x.org");
  });
  it("of a chat service is its own", () =>
    expect(addressOf("slack", { ...NO_PARTS, hook: "https://hooks.example.org/1" })).toBe(
      "https://hooks.example.org/1",
    ));
  it("of Telegram has the token and the chat", () =>
    expect(addressOf("telegram", { ...NO_PARTS, botToken: "1:x", chat: "@lab" })).toBe("tgram://1:x/%40lab"));
  it("needs at least one part, whatever its kind", () =>
    expect(KINDS.filter((kind) => NEEDED[kind].length === 0)).toEqual([]));
  it.each([
    ["https://x.org/a", true],
    ["http://x", true],
    ["x.org", false],
    ["https://", false],
  ])("%j is a webhook: %j", (text, expected) => expect(isHook(text)).toBe(expected));
});
