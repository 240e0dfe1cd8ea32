/** Answers that a change makes old. Only queries of shown parts are asked again. */
import type { QueryClient } from "@tanstack/react-query";

import type { ServerEvent } from "@/api/events";

/** By the noun of an event: the beginnings of the paths whose answers it may change. */
const TOUCHED: Readonly<Record<string, readonly string[]>> = {
  readings: ["/overview", "/gpus", "/nodes", "/jobs/{job}/metrics"],
  job: [
    "/jobs",
    "/workbenches",
    "/apps",
    "/overview",
    "/queues",
    "/panel",
    "/packages",
    "/gpus",
    "/me/quota",
    "/quotas",
    "/budgets",
    "/tasks",
    "/users",
    "/scores",
    "/receipts",
    "/reservations",
    "/estimates",
    "/volumes",
    "/datasets",
    "/me/first-steps",
  ],
  task: ["/tasks", "/jobs", "/overview"],
  node: ["/me/first-steps", "/nodes", "/gpus", "/overview", "/clusters", "/packages", "/pools"],
  gpu: ["/gpus", "/nodes", "/overview", "/pools", "/packages"],
  cluster: ["/clusters", "/nodes", "/overview"],
  queue: ["/queues", "/packages"],
  pool: ["/pools", "/gpus", "/groups", "/packages", "/queues"],
  group: ["/groups", "/users", "/pools", "/me", "/queues"],
  user: ["/users", "/groups", "/quotas", "/permission-groups", "/me"],
  "permission-group": ["/permission-groups", "/users", "/me"],
  quota: ["/quotas", "/users", "/me", "/packages"],
  budget: ["/budgets", "/jobs"],
  price: ["/prices", "/budgets"],
  flavor: ["/flavors", "/packages"],
  package: ["/packages", "/flavors"],
  alert: ["/alerts", "/overview", "/silences", "/deliveries"],
  rule: ["/alert-rules", "/alerts"],
  "alert-rule": ["/alert-rules", "/alerts"],
  silence: ["/silences", "/alerts"],
  channel: ["/channels", "/deliveries", "/me/first-steps"],
  delivery: ["/deliveries", "/channels"],
  report: ["/reports", "/report-schedules"],
  "report-schedule": ["/report-schedules", "/reports"],
  provider: ["/auth/providers", "/me/first-steps"],
  volume: ["/volumes", "/object-stores", "/me/quota", "/quotas"],
  "object-store": ["/object-stores", "/volumes"],
  dataset: ["/datasets"],
  "dataset-target": ["/dataset-targets", "/datasets"],
  image: ["/images", "/registry-logins"],
  registry: ["/registry-logins", "/images"],
  preset: ["/presets"],
  token: ["/me/tokens", "/me/first-steps"],
  "ssh-key": ["/me/ssh-keys"],
  licence: ["/about"],
  reservation: ["/reservations", "/queues", "/packages"],
  estimates: ["/jobs/{job}/why", "/jobs/{job}/receipts", "/queues/{name}/order", "/queues:next", "/estimates"],
  simulation: ["/simulations"],
  shadow: ["/shadow"],
};

/** Events that are too frequent for the audit log. */
const UNKEPT: ReadonlySet<string> = new Set([
  "readings",
  "hello",
  "estimates",
  "simulation.progress",
  "shadow.differed",
]);

export function touchedBy(event: ServerEvent): readonly string[] {
  const noun = event.name.split(".")[0] ?? "";
  const paths = TOUCHED[noun] ?? [`/${noun}s`];
  return UNKEPT.has(event.name) ? paths : [...paths, "/events"];
}

/** Gathers what became old, and asks again at most once a second, slower where answers take long; never while the tab is hidden. */
export class Refresher {
  private readonly touched = new Set<string>();
  private timer: number | undefined;
  private earliest = 0;

  constructor(
    private readonly queries: QueryClient,
    private readonly gapMs = 1_000,
  ) {
    document.addEventListener("visibilitychange", () => this.schedule());
  }

  touch(paths: readonly string[]): void {
    for (const path of paths) this.touched.add(path);
    this.schedule();
  }

  private schedule(): void {
    if (this.touched.size === 0 || this.timer !== undefined || document.visibilityState === "hidden") return;
    // A short breath first: changes come in bunches.
    this.timer = window.setTimeout(() => void this.refresh(), Math.max(120, this.earliest - Date.now()));
  }

  private async refresh(): Promise<void> {
    const paths = [...this.touched];
    this.touched.clear();
    const began = Date.now();
    await this.queries.invalidateQueries({ predicate: (query) => isTouched(query.queryKey, paths) });
    this.timer = undefined;
    const took = Date.now() - began;
    this.earliest = Date.now() + Math.max(this.gapMs, 3 * took);
    this.schedule();
  }
}

export function isTouched(key: readonly unknown[], paths: readonly string[]): boolean {
  const path = key[1];
  return (
    typeof path === "string" &&
    paths.some((touched) => path === touched || path.startsWith(`${touched}/`) || path.startsWith(`${touched}:`))
  );
}
