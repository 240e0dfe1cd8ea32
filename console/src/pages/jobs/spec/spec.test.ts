import { describe, expect, it } from "vitest";

import type { Job } from "@/pages/jobs/actions/possible";
import { commandOf, HIDDEN, looksSecret, shellWord, specOf, yamlOf } from "@/pages/jobs/spec/spec";

const JOB = {
  name: "resnet",
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
  checkpoint_interval_seconds: null,
  image: null,
  venv: null,
  workdir: "/home/ann",
  after: [],
  env: { EPOCHS: "08", WANDB_API_KEY: "s3cret" },
  command: ["python", "train.py", "--note", "it's fine"],
  elastic: null,
} as Partial<Job> as Job;

describe("a job as it can be submitted again", () => {
  it("is a job file with text where text is meant", () => {
    const yaml = yamlOf(specOf(JOB, true));
    expect(yaml).toContain("gpus: 4\n");
    expect(yaml).toContain('memory: "16GiB"\n');
    expect(yaml).toContain('  EPOCHS: "08"\n');
    expect(yaml).toContain("command:\n  - python\n  - train.py\n");
    expect(yaml).not.toContain("nodes");
  });

  it("is a command that a shell reads back", () => {
    const command = commandOf(specOf(JOB, true)) ?? "";
    expect(command).toContain("--time 2h");
    expect(command).toContain("--model A100-80G");
    expect(command).toContain("-- python train.py --note 'it'\\''s fine'");
    expect(shellWord("a b")).toBe("'a b'");
  });

  it("mounts the same again, of a dataset the very version, and leaves out what corral adds by itself", () => {
    const mount = { kind: "volume", source: "data", path: "/data", mode: "ro", volume_id: "v-1", prefetch: false };
    const version = "ab".repeat(32);
    const mounts = [
      { ...mount, dataset: null, version: null },
      { ...mount, kind: "dataset", source: "images@latest", path: "/images", dataset: "d-1", version },
      { ...mount, kind: "local", source: "10GiB", path: "/scratch", mode: "rw" },
    ] as Job["mounts"];
    const spec = specOf({ ...JOB, mounts, labels: { "corral.cluster": "local", rack: "r1" } }, true);
    const command = commandOf(spec) ?? "";
    expect(command).toContain("--mount data:/data:ro");
    expect(command).toContain(`--mount dataset:images@${version}:/images:ro`);
    expect(command).toContain("--mount local:10GiB:/scratch");
    expect(command).not.toContain("corral.cluster");
    expect(yamlOf(spec)).toContain("mounts:\n  - data:/data:ro\n");
  });

  it("hides what looks secret until it is asked for", () => {
    expect(yamlOf(specOf(JOB, false))).toContain(HIDDEN);
    expect(yamlOf(specOf(JOB, false))).not.toContain("s3cret");
    expect(["HF_TOKEN", "DB_PASSWORD", "AWS_SECRET_ACCESS_KEY", "SSH_KEY"].every(looksSecret)).toBe(true);
    expect(["EPOCHS", "KEYBOARD", "MONKEY"].some(looksSecret)).toBe(false);
  });

  it("asks for an elastic size instead of a fixed one, and for a package instead of numbers", () => {
    const elastic = yamlOf(
      specOf(
        { ...JOB, elastic: { min_gpus: 1, max_gpus: 4, utilization: null, resized_at: null, next_gpus: null } },
        true,
      ),
    );
    expect(elastic).toContain("min-gpus: 1\nmax-gpus: 4\n");
    expect(elastic).not.toMatch(/^gpus:/m);
    const packaged = yamlOf(specOf({ ...JOB, package: "a100-x4" }, true));
    expect(packaged).toContain("package: a100-x4\n");
    expect(packaged).not.toContain("memory:");
  });

  it("has no command line for a preset", () => {
    expect(commandOf(specOf({ ...JOB, preset: "llama", parameters: { lr: "1" } }, true))).toBeUndefined();
  });
});
