import { Textarea } from "@mantine/core";

import { commandOf } from "@/pages/jobs/newjob/draft/commandline";
import { useField, useForm } from "@/pages/jobs/newjob/form";
import { texts } from "@/pages/jobs/newjob/texts";
import { useTexts } from "@/texts/texts";

export function CommandField() {
  const t = useTexts(texts);
  const { draft } = useForm();
  const field = useField();
  return (
    <Textarea
      label={t("command")}
      description={useMeaning(draft.command)}
      autosize
      minRows={2}
      maxRows={12}
      withAsterisk
      spellCheck={false}
      autoComplete="off"
      inputWrapperOrder={["label", "input", "description", "error"]}
      styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
      placeholder="python train.py --epochs 10"
      {...field("command")}
    />
  );
}

/** Whether the line runs directly or in a shell, shown while it is typed. */
function useMeaning(line: string): string {
  const t = useTexts(texts);
  if (line.trim() === "") return t("commandHint");
  const { words: parts, isShell } = commandOf(line);
  return isShell ? t("runsInShell") : t("runsDirectly", { program: parts[0] ?? "", n: parts.length - 1 });
}
