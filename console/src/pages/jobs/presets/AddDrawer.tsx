/** A preset of the installation's own, as YAML. Every mistake is named by its line. */
import { Button, Checkbox, Group, List, Text, Textarea } from "@mantine/core";
import { useState, type FormEvent } from "react";

import { api, sent, type Schema } from "@/api/client";
import type { Problem } from "@/api/problem";
import { useAction } from "@/api/useAction";
import type { Preset } from "@/pages/jobs/presets/PresetCard";
import { texts } from "@/pages/jobs/presets/texts";
import { FormDrawer } from "@/parts/FormDrawer";
import { useTexts } from "@/texts/texts";

interface Fields {
  readonly yaml: string;
  readonly replace: boolean;
}

const EXAMPLE = `name: resnet
title: ResNet on our pictures
description: Fine-tunes ResNet-50.
parameters:
  - {name: data, type: path, help: A directory with one directory for each class.}
  - {name: epochs, type: int, min: 1, max: 1000, default: 90}
request: {gpus: 1, cpus: 4, memory: 16GiB, time: 12h}
command: [python, train.py, --data, "{data}", --epochs, "{epochs}"]
`;

export function AddDrawer({ presets, onClose }: { presets: readonly Preset[]; onClose: () => void }) {
  const t = useTexts(texts);
  const [fields, setFields] = useState<Fields>({ yaml: "", replace: false });
  const [isAttempted, setAttempted] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const add = useAction<Fields, Schema<"PresetView">>({
    run: (body) => sent(api.POST("/presets", { body })),
    touches: ["/presets"],
    done: ({ name }) => t("added", { name }),
    onDone: onClose,
    onProblem: setProblem,
  });
  const isEmpty = fields.yaml.trim() === "";
  const name = /^name: *"?([\w-]+)/m.exec(fields.yaml)?.[1];
  const isTaken = presets.some((preset) => preset.name === name && !preset.shipped);
  function submit(event: FormEvent) {
    event.preventDefault();
    setAttempted(true);
    setProblem(null);
    if (!isEmpty) add.mutate(fields);
  }
  return (
    <FormDrawer
      opened
      title={t("addTitle")}
      size="xl"
      onClose={onClose}
      onSubmit={submit}
      submitLabel={t("add")}
      busy={add.isPending}
      problem={problem}
    >
      <Text size="sm">{t("addHint")}</Text>
      <Group gap="xs">
        <Button variant="default" onClick={() => setFields({ ...fields, yaml: EXAMPLE })} disabled={!isEmpty}>
          {t("addStart")}
        </Button>
      </Group>
      <Textarea
        label="YAML"
        withAsterisk
        autosize
        minRows={14}
        maxRows={30}
        spellCheck={false}
        data-autofocus
        styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
        value={fields.yaml}
        error={isEmpty && isAttempted ? t("needed") : undefined}
        onChange={(event) => setFields({ ...fields, yaml: event.currentTarget.value })}
      />
      {problem !== null && problem.fields.length === 1 && (
        <List size="sm">
          {problem.fields.map((one) => (
            <List.Item key={one.field + one.detail}>
              {one.field}: {one.detail}
            </List.Item>
          ))}
        </List>
      )}
      {(isTaken || fields.replace) && (
        <Checkbox
          label={t("replace")}
          checked={fields.replace}
          onChange={(event) => setFields({ ...fields, replace: event.currentTarget.checked })}
        />
      )}
    </FormDrawer>
  );
}
