import { ActionIcon, Button, Fieldset, Group, Stack, Text, TextInput, Tooltip } from "@mantine/core";
import { Plus, Trash2 } from "lucide-react";

import { useForm } from "@/pages/jobs/newjob/form";
import type { Variable } from "@/pages/jobs/newjob/draft/draft";
import { texts } from "@/pages/jobs/newjob/texts";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

export function Variables() {
  const t = useTexts(texts);
  const { draft, set, problem } = useForm();
  const change = (at: number, to: Partial<Variable>) =>
    set({ env: draft.env.map((one, index) => (index === at ? { ...one, ...to } : one)) });
  return (
    <Fieldset legend={t("variables")} p="sm">
      <Stack gap="xs">
        {draft.env.map((variable, at) => (
          <VariableRow
            key={at}
            at={at}
            variable={variable}
            error={problem(`env.${at}`)}
            onChange={(to) => change(at, to)}
            onRemove={() => set({ env: draft.env.filter((_, index) => index !== at) })}
          />
        ))}
        {problem("env") !== undefined && (
          <Text size="xs" c="var(--mantine-color-error)">
            {problem("env")}
          </Text>
        )}
        <Group justify="space-between" gap="xs">
          <Button
            variant="default"
            leftSection={<Plus size={14} />}
            onClick={() => set({ env: [...draft.env, { name: "", value: "" }] })}
          >
            {t("addVariable")}
          </Button>
          {draft.env.length > 0 && (
            <Text size="xs" c="dimmed">
              {t("variablesNote")}
            </Text>
          )}
        </Group>
      </Stack>
    </Fieldset>
  );
}

interface RowProps {
  readonly at: number;
  readonly variable: Variable;
  readonly error: string | undefined;
  readonly onChange: (to: Partial<Variable>) => void;
  readonly onRemove: () => void;
}

function VariableRow({ at, variable, error, onChange, onRemove }: RowProps) {
  const t = useTexts(texts);
  const c = useTexts(common);
  return (
    <Group gap="xs" wrap="nowrap" align="flex-start">
      <TextInput
        style={{ flex: 2 }}
        aria-label={t("variableName", { n: at + 1 })}
        placeholder="EPOCHS"
        value={variable.name}
        error={error}
        spellCheck={false}
        onChange={(event) => onChange({ name: event.currentTarget.value })}
      />
      <TextInput
        style={{ flex: 3 }}
        aria-label={t("variableValue", { n: at + 1 })}
        placeholder="90"
        value={variable.value}
        spellCheck={false}
        autoComplete="off"
        onChange={(event) => onChange({ value: event.currentTarget.value })}
      />
      <Tooltip label={c("remove")}>
        <ActionIcon
          variant="subtle"
          color="gray"
          mt={3}
          size="lg"
          aria-label={t("removeVariable", { name: variable.name || String(at + 1) })}
          onClick={onRemove}
        >
          <Trash2 size={15} />
        </ActionIcon>
      </Tooltip>
    </Group>
  );
}
