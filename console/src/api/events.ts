/** Server-sent events out of a stream of bytes. (The browser's EventSource only receives event names that were registered before.) */

export interface ServerEvent {
  readonly name: string;
  readonly id: string;
  readonly data: string;
}

/** `onQuiet` is called for comments, by which the server says that it is still there. */
export async function* parseEvents(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  onQuiet: () => void = () => undefined,
): AsyncGenerator<ServerEvent> {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const blocks = (rest + value).split(/\r?\n\r?\n/);
      rest = blocks.pop() ?? "";
      for (const block of blocks) {
        const event = eventOf(block);
        if (event === undefined) onQuiet();
        else yield event;
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

export function eventOf(block: string): ServerEvent | undefined {
  let name = "message";
  let id = "";
  const data: string[] = [];
  for (const line of block.split(/\r?\n/)) {
    const [field, value] = split(line);
    if (field === "event") name = value;
    else if (field === "id") id = value;
    else if (field === "data") data.push(value);
  }
  return data.length === 0 ? undefined : { name, id, data: data.join("\n") };
}

function split(line: string): [field: string, value: string] {
  const colon = line.indexOf(":");
  if (colon < 0) return [line, ""];
  return [line.slice(0, colon), line.slice(colon + 1).replace(/^ /, "")];
}
