import { readFileSync } from "node:fs";

import { describe, expect, it } from "vitest";

import type { Job } from "@/pages/jobs/actions/possible";
import { jobBody } from "@/pages/jobs/newjob/draft/body";
import { EMPTY, ofJob, type Draft } from "@/pages/jobs/newjob/draft/draft";
import { NEW_MOUNT } from "@/pages/jobs/newjob/draft/mounts";
import { commandLineOf, yamlOf } from "@/pages/jobs/spec/jobText";
import { HIDDEN, looksSecret, submissionOf } from "@/pages/jobs/spec/submission";

const JOB = {
  name: "resnet",
  description: "Baseline",
  kind: "training",
  preset: null,
  parameters: {},
  package: null,
  flavor: null,
  gpus: 4,
  nodes: 1,
  cpus: 0,
  memory_bytes: 16 * 2 ** 30,
  models: ["A100-80G"],
  labels: {},
  queue: "default",
  priority: 5,
  time_limit_seconds: 7_200,
  grace_seconds: 30,
  max_retries: 3,
  preemptible: true,
  restart_unsaved: false,
  checkpoint_interval_seconds: null,
  image: null,
  venv: null,
  workdir: "/home/ann",
  after: [],
  env: { EPOCHS: "08", WANDB_API_KEY: "s3cret" },
  command: ["python", "train.py", "--note", "it's fine"],
  elastic: null,
} as Partial<Job> as Job;

const MOUNT = { kind: "volume", source: "data", path: "/data", mode: "ro", volume_id: "v-1", prefetch: false };
const ELASTIC = { min_gpus: 1, max_gpus: 4, utilization: null, resized_at: null, next_gpus: null };

/** A job with a value other than the default in every field that can stand beside the others. */
const FULL = {
  ...JOB,
  nodes: 2,
  cpus: 8,
  labels: { rack: "r1" },
  preemptible: false,
  retry_on: ["exit"],
  idles: true,
  restart_if_hung: true,
  secrets: ["wandb=WANDB_API_KEY"],
  app: "tensorboard",
  app_port: 8080,
  app_name: "curves",
  checkpoint_interval_seconds: 300,
  commit_outputs: "weights=best",
  image: "pytorch",
  venv: "/envs/torch",
  git: "https://git.example.org/a.git",
  git_ref: "main",
  git_dir: "first",
  git_secret: "deploy",
  after: ["j-1"],
  mounts: [MOUNT] as unknown as Job["mounts"],
} satisfies Job;

/** Jobs that together have every field: some fields exclude each other. */
const EVERY_FIELD: readonly Job[] = [
  FULL,
  { ...FULL, flavor: "fast" },
  { ...FULL, package: "a100-x4" },
  { ...FULL, elastic: ELASTIC, restart_unsaved: true },
  { ...FULL, preset: "llama", parameters: { lr: "1" } },
  { ...FULL, kind: "workbench" },
];

const OPENAPI = new URL("../../../../../docs/reference/openapi.json", import.meta.url);

function fieldsOf(schema: "JobCreate" | "JobArray"): string[] {
  const { components } = JSON.parse(readFileSync(OPENAPI, "utf8")) as {
    components: { schemas: Record<string, { properties: object }> };
  };
  return Object.keys(components.schemas[schema]?.properties ?? {}).sort();
}

function namesOf(bodies: readonly object[]): string[] {
  return [...new Set(bodies.flatMap(Object.keys))].sort();
}

describe("every field of a job in the API's description", () => {
  it("is in the job file that is copied from a job", () => {
    const bodies = EVERY_FIELD.map((job) => submissionOf(job, true));
    // The API does not show whether a job was submitted with `hold`.
    expect([...namesOf(bodies), "hold"].sort()).toEqual(fieldsOf("JobCreate"));
    for (const body of bodies) {
      const keys = yamlOf(body).match(/^[a-z-]+(?=:)/gm);
      expect(keys).toHaveLength(Object.keys(body).length);
    }
  });

  it("is in the request of the form for a new job", () => {
    const draft: Draft = {
      ...EMPTY,
      ...ofJob(FULL, "clone=j-1", []),
      name: "next",
      array: "0-9",
      pack: true,
      hold: true,
      after: ["j-1"],
      mounts: [{ ...NEW_MOUNT.volume, source: "data" }],
    };
    const drafts: Draft[] = [
      { ...draft, kind: "distributed" },
      { ...draft, flavor: "fast" },
      { ...draft, sizing: "package", package: "a100-x4" },
      { ...draft, isElastic: true, max_gpus: "4", restart_unsaved: true },
      { ...draft, kind: "preset", preset: "llama", parameters: { lr: "1" } },
    ];
    expect(namesOf(drafts.map(jobBody))).toEqual(fieldsOf("JobArray"));
  });
});

describe("a job as it can be submitted again", () => {
  it("is a job file with text where text is meant", () => {
    const yaml = yamlOf(submissionOf(JOB, true));
    expect(yaml).toContain("gpus: 4\n");
    expect(yaml).toContain("memory: 16GiB\n");
    expect(yaml).toContain('  EPOCHS: "08"\n');
    expect(yaml).toContain('command: [python, train.py, "--note", "it\'s fine"]\n');
    expect(yaml).not.toContain("nodes");
    expect(yaml).not.toContain("preemptible");
  });

  it("stays a job that is not preempted", () => {
    const body = submissionOf({ ...JOB, preemptible: false }, true);
    expect(yamlOf(body)).toContain("preemptible: false\n");
    expect(commandLineOf(body)).toContain("--no-preemptible");
  });

  it("is a command that a shell reads back", () => {
    const command = commandLineOf(submissionOf(JOB, true));
    expect(command).toContain("--time 2h");
    expect(command).toContain("--model A100-80G");
    expect(command).toContain(`-- python train.py --note 'it'"'"'s fine'`);
  });

  it("mounts the same again, of a dataset the very version, and leaves out the labels that corral sets itself", () => {
    const version = "ab".repeat(32);
    const mounts = [
      { ...MOUNT, dataset: null, version: null },
      { ...MOUNT, kind: "dataset", source: "images@latest", path: "/images", dataset: "d-1", version },
      { ...MOUNT, kind: "local", source: "10GiB", path: "/scratch", mode: "rw" },
    ] as Job["mounts"];
    const body = submissionOf({ ...JOB, mounts, labels: { "corral.cluster": "local", rack: "r1" } }, true);
    const command = commandLineOf(body);
    expect(command).toContain("--mount data:/data:ro");
    expect(command).toContain(`--mount dataset:images@${version}:/images:ro`);
    expect(command).toContain("--mount local:10GiB:/scratch");
    expect(command).toContain("--label rack=r1");
    expect(command).not.toContain("corral.cluster");
    expect(yamlOf(body)).toContain('mounts: ["data:/data:ro", ');
  });

  it("hides values that look secret until they are asked for", () => {
    expect(yamlOf(submissionOf(JOB, false))).toContain(HIDDEN);
    expect(yamlOf(submissionOf(JOB, false))).not.toContain("s3cret");
    expect(["HF_TOKEN", "DB_PASSWORD", "AWS_SECRET_ACCESS_KEY", "SSH_KEY"].every(looksSecret)).toBe(true);
    expect(["EPOCHS", "KEYBOARD", "MONKEY"].some(looksSecret)).toBe(false);
  });

  it("asks for an elastic size instead of a fixed one, and for a package instead of numbers", () => {
    const elastic = yamlOf(submissionOf({ ...JOB, elastic: ELASTIC }, true));
    expect(elastic).toContain("min-gpus: 1\nmax-gpus: 4\n");
    expect(elastic).not.toMatch(/^gpus:/m);
    const packaged = yamlOf(submissionOf({ ...JOB, package: "a100-x4" }, true));
    expect(packaged).toContain("package: a100-x4\n");
    expect(packaged).not.toContain("memory:");
  });

  it("passes a preset with more fields than `corral preset run` has flags for as a file", () => {
    const line = commandLineOf(submissionOf({ ...JOB, preset: "llama", parameters: { lr: "1" } }, true));
    expect(line).toMatch(/^corral submit -f \/dev\/stdin <<'EOF'\n/);
    expect(line).toContain("preset: llama\n");
  });
});
