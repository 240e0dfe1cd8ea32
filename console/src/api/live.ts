/**
 * The server's event stream: one connection for all tabs of a browser, which refreshes the queries concerned.
 *
 * Browsers open only six connections to a server, so tabs share one: the tab that holds the lock listens and passes on what it
 * hears. Where locks are missing (plain HTTP to another machine) each tab listens for itself.
 */
import { PREFIX } from "@/api/client";
import { parseEvents, type ServerEvent } from "@/api/events";

export type LiveState = "connecting" | "live" | "stale";
type Listener = (event: ServerEvent) => void;
type Message =
  { readonly kind: "event"; readonly event: ServerEvent } | { readonly kind: "state"; readonly state: LiveState };

/** The server sends at least a ping every 15 seconds; after three missed pings the connection counts as lost. */
const SILENCE_MS = 45_000;
const RETRY_MS = [500, 1_000, 2_000, 5_000, 10_000];

export class LiveConnection {
  private state: LiveState = "connecting";
  private since = Date.now();
  private heard = Date.now();
  private readonly listeners = new Set<Listener>();
  private readonly watchers = new Set<() => void>();
  private readonly ended = new AbortController();
  private channel: BroadcastChannel | undefined;

  /** Events after `lastId` are wanted. */
  constructor(private lastId: string) {}

  start(): void {
    const watch = window.setInterval(() => this.checkSilence(), 5_000);
    this.ended.signal.addEventListener("abort", () => window.clearInterval(watch));
    if (!("locks" in navigator) || typeof BroadcastChannel === "undefined") {
      void this.listen();
      return;
    }
    this.channel = new BroadcastChannel("corral-live");
    this.channel.onmessage = (message: MessageEvent<Message>) => this.take(message.data);
    navigator.locks.request("corral-live", { signal: this.ended.signal }, () => this.listen()).catch(() => undefined);
  }

  stop(): void {
    this.ended.abort();
    this.channel?.close();
  }

  get current(): LiveState {
    return this.state;
  }

  /** When the present state began, in milliseconds. */
  get stateSince(): number {
    return this.since;
  }

  onEvent(listener: Listener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  onState = (watcher: () => void): (() => void) => {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  };

  private async listen(): Promise<void> {
    for (let failures = 0; !this.ended.signal.aborted; failures += 1) {
      try {
        await this.listenOnce(() => {
          failures = 0;
        });
      } catch (error) {
        if (this.ended.signal.aborted) return;
        if (error instanceof SignedOut) {
          this.pass({ kind: "state", state: "stale" });
          return;
        }
      }
      this.pass({ kind: "state", state: "stale" });
      await this.pause(RETRY_MS[Math.min(failures, RETRY_MS.length - 1)] ?? 10_000);
    }
  }

  private async listenOnce(connected: () => void): Promise<void> {
    const quiet = new AbortController();
    const signal = AbortSignal.any([this.ended.signal, quiet.signal]);
    const watch = window.setInterval(() => Date.now() - this.heard > SILENCE_MS && quiet.abort(), 5_000);
    try {
      this.heard = Date.now();
      const headers: Record<string, string> = this.lastId === "" ? {} : { "Last-Event-ID": this.lastId };
      const answer = await fetch(`${PREFIX}/stream`, { headers, signal });
      if (answer.status === 401 || answer.status === 403) throw new SignedOut();
      if (!answer.ok || answer.body === null) throw new Error(`the stream answered ${answer.status}`);
      connected();
      this.pass({ kind: "state", state: "live" });
      for await (const event of parseEvents(answer.body, () => this.pass({ kind: "state", state: "live" }))) {
        this.pass({ kind: "event", event });
      }
    } finally {
      window.clearInterval(watch);
    }
  }

  /** Here, and in the other tabs. */
  private pass(message: Message): void {
    this.take(message);
    if (!this.ended.signal.aborted) this.channel?.postMessage(message);
  }

  private take(message: Message): void {
    if (message.kind === "state") {
      if (message.state === "live") this.heard = Date.now();
      this.become(message.state);
      return;
    }
    this.heard = Date.now();
    if (message.event.id !== "") this.lastId = message.event.id;
    this.become("live");
    for (const listener of this.listeners) listener(message.event);
  }

  private become(state: LiveState): void {
    if (state === this.state) return;
    this.state = state;
    this.since = Date.now();
    for (const watcher of this.watchers) watcher();
  }

  private checkSilence(): void {
    if (Date.now() - this.heard > SILENCE_MS) this.become("stale");
  }

  private pause(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = window.setTimeout(resolve, milliseconds);
      this.ended.signal.addEventListener("abort", () => {
        window.clearTimeout(timer);
        resolve();
      });
    });
  }
}

class SignedOut extends Error {}
