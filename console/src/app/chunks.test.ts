import { describe, expect, it } from "vitest";

import { isMissingFile } from "@/app/chunks";

describe("a file of the console that is missing", () => {
  it.each([
    "Failed to fetch dynamically imported module: http://gpu-head/assets/JobsPage-1a2b.js",
    "error loading dynamically imported module: http://gpu-head/assets/JobsPage-1a2b.js",
    "Importing a module script failed.",
    "Unable to preload CSS for /assets/JobsPage-1a2b.css",
  ])("is recognised: %s", (message) => expect(isMissingFile(new TypeError(message))).toBe(true));

  it.each([new Error("Failed to fetch"), "text", undefined])("is no other failure: %s", (error) =>
    expect(isMissingFile(error)).toBe(false),
  );
});
