import { describe, expect, it } from "vitest";

import { Checksum } from "@/api/checksum";

const bytes = (text: string) => new TextEncoder().encode(text);

describe("a checksum", () => {
  // As Python's hashlib.blake2b(…, digest_size=32) says, which is what the server uses.
  it.each([
    ["", "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8"],
    ["abc", "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319"],
    ["a".repeat(127), "59e2f1aba240f20aa591016f5ef429990bc9c2131dcd0d30f0ffd75ed18f317d"],
    ["a".repeat(128), "ae2aa48507885c4c950fb809b2076f959cde9f8ea6da260d9a3587df33dac450"],
    ["a".repeat(129), "2f64744a6de0d2c0b56e64cf6e29a5aaa255010d415d51c75ccc82f73dccd865"],
    ["corral".repeat(5000), "8a1ccccdf3a21e4de7009ee9e82844c7a6d4c38035f97bf751e693f912a528ae"],
  ])("is the server's own", (text, digest) => expect(new Checksum().update(bytes(text)).digest()).toBe(digest));

  it("is the same in whatever pieces the bytes come", () => {
    const all = bytes("0123456789".repeat(100));
    const whole = new Checksum().update(all).digest();
    for (const size of [1, 7, 64, 127, 128, 129, 500]) {
      const hash = new Checksum();
      for (let at = 0; at < all.length; at += size) hash.update(all.subarray(at, at + size));
      expect(hash.digest()).toBe(whole);
    }
  });
});
