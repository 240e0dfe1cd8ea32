import { describe, expect, it } from "vitest";

import { isTouched, touchedBy } from "@/api/freshness";

const event = (name: string) => ({ name, id: "1", data: "{}" });

describe("what an event makes old", () => {
  it("is everything about jobs when a job changes, and the audit log", () => {
    expect(touchedBy(event("job.running"))).toEqual(
      expect.arrayContaining(["/jobs", "/queues", "/overview", "/events"]),
    );
  });

  it("is only what is measured when there are new readings", () => {
    const touched = touchedBy(event("readings"));
    expect(touched).toEqual(expect.arrayContaining(["/overview", "/gpus", "/nodes"]));
    expect(touched).not.toContain("/jobs");
    expect(touched).not.toContain("/events");
  });

  it("is its question while one is worked out, and not the audit log", () => {
    expect(touchedBy(event("simulation.progress"))).toEqual(["/simulations"]);
    expect(touchedBy(event("simulation.done"))).toEqual(["/simulations", "/events"]);
  });

  it("is the list of its own noun without further rules", () => {
    expect(touchedBy(event("gadget.made"))).toContain("/gadgets");
  });
});

describe("a query is touched", () => {
  it.each(["/jobs", "/jobs/{job}/why", "/jobs:counts"])("at %s by /jobs", (path) =>
    expect(isTouched(["get", path, {}], ["/jobs"])).toBe(true),
  );
  it("but not by a path that only begins alike", () =>
    expect(isTouched(["get", "/queues-of-others", {}], ["/queues"])).toBe(false));
});
