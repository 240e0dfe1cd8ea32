import { expect, test } from "vitest";

import { trainingReport } from "@/pages/jobs/job/trainingReport";

const REPORT = {
  title: "Classification: flowers",
  facts: ["mode", "accuracy"],
  mode: "fine-tune",
  accuracy: 0.91666,
  classes: ["rose", "tulip"],
  curves: ["loss", "accuracy"],
  history: [
    { epoch: 1, loss: 0.7, accuracy: 0.5 },
    { epoch: 2, loss: 0.2, accuracy: 0.9 },
  ],
  confusion: [
    [5, 1],
    [0, 6],
  ],
};

test("a report is read with its curves, facts and confusion matrix", () => {
  const report = trainingReport(JSON.stringify(REPORT));
  expect(report?.facts).toEqual([
    ["mode", "fine-tune"],
    ["accuracy", "0.9167"],
  ]);
  expect(report?.curves).toEqual([
    { name: "loss", values: [0.7, 0.2] },
    { name: "accuracy", values: [0.5, 0.9] },
  ]);
  expect(report?.confusion).toEqual(REPORT.confusion);
  expect(report?.averagePrecision).toBeUndefined();
});

test("what a job wrote instead of a report is not shown", () => {
  expect(trainingReport("<html>")).toBeUndefined();
  expect(trainingReport("[]")).toBeUndefined();
  expect(trainingReport(JSON.stringify({ ...REPORT, history: "no" }))).toBeUndefined();
  expect(trainingReport(JSON.stringify({ ...REPORT, history: [{ loss: "x" }] }))).toBeUndefined();
  expect(trainingReport(JSON.stringify({ ...REPORT, confusion: [[1]] }))?.confusion).toBeUndefined();
});
