import { describe, expect, it } from "vitest";

import { commandLineOf, yamlOf } from "@/pages/jobs/spec/jobText";
import { commandOf, lineOf } from "@/pages/jobs/newjob/draft/commandline";

describe("a command line", () => {
  it.each([
    ["python train.py --note 'two words'", ["python", "train.py", "--note", "two words"]],
    ['python "a b".py', ["python", "a b.py"]],
    ["run --gpus {gpu_count} --x=1", ["run", "--gpus", "{gpu_count}", "--x=1"]],
    ["echo ''", ["echo", ""]],
  ])("%s is run as it is", (line, words) => {
    expect(commandOf(line)).toEqual({ words, isShell: false });
    expect(commandOf(lineOf(words)).words).toEqual(words);
  });
  it.each(["a | b", "a && b", "echo $HOME", 'echo "$HOME"', "A=1 run", "ls *.py", "a\nb", "echo 'open", "a > b"])(
    "%s needs a shell",
    (line) => {
      const { words, isShell } = commandOf(line);
      expect(isShell).toBe(true);
      expect(words).toEqual(["/bin/sh", "-c", line]);
      expect(lineOf(words)).toBe(line);
    },
  );
});

describe("a job as text", () => {
  it("quotes what YAML would take for something else", () => {
    const text = yamlOf({
      name: "null",
      command: ["true", "08", "a: b"],
      gpus: 0.5,
      time: "2h",
      env: { A: "yes", B: 'say "hi"' },
      max_retries: 2,
    });
    expect(text).toBe(
      'name: "null"\ncommand: ["true", "08", "a: b"]\ngpus: 0.5\ntime: 2h\nenv:\n  A: "yes"\n  B: "say \\"hi\\""\nretries: 2\n',
    );
  });
  it("writes a shell's line as a text", () =>
    expect(yamlOf({ command: ["/bin/sh", "-c", "a | b"] })).toBe('command: "a | b"\n'));
  it("quotes for a shell, and repeats what is repeatable", () => {
    const line = commandLineOf({
      name: "x1-y",
      command: ["echo", "it's"],
      model: ["A10", "A100"],
      hold: true,
      env: { A: "b c" },
    });
    expect(line.replaceAll(" \\\n  ", " ")).toBe(
      `corral submit --name x1-y --model A10 --model A100 --hold --env 'A=b c' -- echo 'it'"'"'s'`,
    );
  });
  it("passes a preset with more fields than `corral preset run` has flags for as a file", () => {
    expect(commandLineOf({ preset: "p", parameters: { n: "1" } })).toBe("corral preset run p -p n=1");
    expect(commandLineOf({ preset: "p", after: ["j-1"] })).toBe(
      "corral submit -f /dev/stdin <<'EOF'\npreset: p\nafter: [j-1]\nEOF",
    );
  });
});
