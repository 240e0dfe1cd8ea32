import { readFileSync } from "node:fs";

import { describe, expect, it } from "vitest";

import type { Schema } from "@/api/client";
import { jobBody, workbenchBody } from "@/pages/jobs/newjob/draft/body";
import { EMPTY, ofJob, type Draft } from "@/pages/jobs/newjob/draft/draft";
import { stepOf } from "@/pages/jobs/newjob/steps";
import { plainFieldsOf, sentValue, typedValue } from "@/pages/jobs/spec/fields";
import { SWITCHES } from "@/pages/jobs/spec/switches";
import { submissionOf } from "@/pages/jobs/spec/submission";

interface Property {
  readonly type?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly maxLength?: number;
  readonly default?: unknown;
  readonly anyOf?: readonly Property[];
}

const REFERENCE = "../../../../../docs/reference/";
const openapi = JSON.parse(readFileSync(new URL(`${REFERENCE}openapi.json`, import.meta.url), "utf8")) as {
  components: { schemas: Record<string, { properties: Record<string, Property> }> };
};
const commands = readFileSync(new URL(`${REFERENCE}cli.md`, import.meta.url), "utf8");

function properties(schema: string): Record<string, Property> {
  return openapi.components.schemas[schema]?.properties ?? {};
}

/** The property without the possible null. */
function typed(property: Property | undefined): Property {
  return property?.anyOf?.find((one) => one.type !== "null") ?? property ?? {};
}

/** The options in the help of a command. */
function flagsOf(command: string): string {
  const start = commands.indexOf(`### \`corral ${command}\`\n`);
  return commands.slice(start, commands.indexOf("\n### ", start + 1));
}

/** Fields with inputs and rules of their own. A new field of the API belongs in `spec/fields.ts`, or in this list. */
const OTHERS = [
  ...[
    "name",
    "kind",
    "command",
    "preset",
    "parameters",
    "image",
    "mounts",
    "env",
    "secrets",
    "labels",
    "app",
    "port",
    "app_name",
  ],
  ...["gpus", "min_gpus", "max_gpus", "restart_unsaved", "nodes", "cpus", "memory", "model", "flavor", "package"],
  ...["queue", "hold", "after", "retry_on"],
];
const ROWS = plainFieldsOf(false);
const SAMPLES = { lines: "a text", path: "/data", whole: "7", duration: "5m" } as const;

describe("the table of plain job fields", () => {
  it("has every field of the API that has no input of its own", () => {
    const names = [...ROWS.map((row) => row.name), ...SWITCHES.map((row) => row.name), ...OTHERS];
    expect(names.sort()).toEqual(Object.keys(properties("JobCreate")).sort());
  });

  it.each(ROWS)("says the same about $name as the API and the commands", (row) => {
    const property = typed(properties("JobCreate")[row.name]);
    if (row.type === "whole") expect([property.minimum, property.maximum]).toEqual([row.least, row.most]);
    if (row.type === "lines") expect(property.maxLength).toBe(row.most);
    expect(row.isForWorkbenches === true).toBe(row.name in properties("WorkbenchCreate"));
    if (row.isAlwaysEditable === true) expect(properties("JobEdit")).toHaveProperty(row.name);
    const flag = `--${row.flag ?? row.name.replaceAll("_", "-")} `;
    expect(flagsOf("submit")).toContain(flag);
    expect(flagsOf("preset run").includes(flag)).toBe(row.isForPresetRun === true);
    expect(flagsOf("workbench create").includes(flag)).toBe(row.isForWorkbenches === true);
  });

  it.each(ROWS)("brings $name into the request, the clone, the copied file and a step", (row) => {
    const typedIn: Draft = { ...EMPTY, [row.name]: SAMPLES[row.type] };
    const value = sentValue(row, SAMPLES[row.type]);
    expect(jobBody(typedIn)).toHaveProperty(row.name, value);
    const bench: object = workbenchBody({ ...typedIn, kind: "workbench" });
    expect(row.name in bench).toBe(row.isForWorkbenches === true);
    expect(stepOf(row.name)).toBeDefined();
    const job = shownJob();
    expect(ofJob(job, "", [])[row.name]).toBe(typedValue(row, job));
    expect(typedValue(row, job)).not.toBe("");
    expect(submissionOf(job, true)).toHaveProperty(row.name);
  });
});

describe("the table of yes-or-no fields", () => {
  it.each(SWITCHES)("has the default of the API for $name", ({ name, usual }) => {
    const property = typed(properties("JobCreate")[name]);
    expect(property.type).toBe("boolean");
    expect(property.default ?? usual).toBe(usual);
    expect(properties("WorkbenchCreate")).not.toHaveProperty(name);
  });

  it.each(SWITCHES)("brings $name into the request, the clone, the copied file and a step", ({ name, usual }) => {
    expect(jobBody(EMPTY)).not.toHaveProperty(name);
    expect(jobBody({ ...EMPTY, [name]: !usual })).toHaveProperty(name, !usual);
    expect(stepOf(name)).toBeDefined();
    const job = { ...shownJob(), [name]: !usual };
    expect(ofJob(job, "", [])[name]).toBe(!usual);
    expect(submissionOf(job, true)).toHaveProperty(name, !usual);
  });
});

/** A job with a value in every field of the view. */
function shownJob(): Schema<"JobView"> {
  const values = Object.entries(properties("JobView")).map(([name, property]) => {
    const { type } = typed(property);
    const value = type === "string" ? "/text" : type === "array" ? [] : type === "object" ? {} : 300;
    return [name, value] as const;
  });
  return { ...Object.fromEntries(values), package: null, elastic: null, preset: null } as unknown as Schema<"JobView">;
}
