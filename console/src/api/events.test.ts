import { describe, expect, it } from "vitest";

import { parseEvents, type ServerEvent } from "@/api/events";

function streamOf(...pieces: string[]): ReadableStream<Uint8Array<ArrayBuffer>> {
  return new ReadableStream({
    start(controller) {
      for (const piece of pieces) controller.enqueue(new TextEncoder().encode(piece));
      controller.close();
    },
  });
}

async function eventsOf(...pieces: string[]): Promise<[ServerEvent[], number]> {
  let quiet = 0;
  const events: ServerEvent[] = [];
  for await (const event of parseEvents(streamOf(...pieces), () => (quiet += 1))) events.push(event);
  return [events, quiet];
}

describe("server-sent events", () => {
  it("are whole however the bytes were cut", async () => {
    const text = 'id: 7\nevent: job.running\ndata: {"subject":"j-1"}\n\nid: 8\nevent: job.completed\ndata: {}\n\n';
    for (let cut = 1; cut < text.length; cut += 1) {
      const [events] = await eventsOf(text.slice(0, cut), text.slice(cut));
      expect(events.map((event) => [event.id, event.name])).toEqual([
        ["7", "job.running"],
        ["8", "job.completed"],
      ]);
    }
  });

  it("keep several lines of data apart, and tell a ping from an event", async () => {
    const [events, quiet] = await eventsOf(": ping\n\ndata: one\ndata: two\n\n");
    expect(events).toEqual([{ name: "message", id: "", data: "one\ntwo" }]);
    expect(quiet).toBe(1);
  });

  it("drop what was cut off in the end", async () => {
    expect((await eventsOf("event: a\ndata: 1\n\nevent: b\nda"))[0]).toHaveLength(1);
  });
});
