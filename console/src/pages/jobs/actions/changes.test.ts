import { expect, test } from "vitest";

import { movePlaces } from "@/pages/jobs/actions/changes";

const grant = (node: string, gpus: string[]) => ({ node, gpus, gpu_share: 1, cpus: 0, memory_bytes: 0 });

test("an allocation is shown as its nodes with their GPUs", () => {
  expect(movePlaces({ model: "A10", grants: [grant("a", ["a/0", "a/3"]), grant("b", ["b/1"])] })).toBe("a: 0, 3; b: 1");
  expect(movePlaces({ model: "", grants: [grant("a", [])] })).toBe("a");
});
