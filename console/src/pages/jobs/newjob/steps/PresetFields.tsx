/** A preset and its parameters, each with the field that fits its type. */
import { Autocomplete, Badge, Group, Select, SimpleGrid, Skeleton, Stack, Text, TextInput } from "@mantine/core";

import type { Schema } from "@/api/client";
import { useAll } from "@/api/useAll";
import { rangeText } from "@/pages/jobs/newjob/draft/check";
import { useForm } from "@/pages/jobs/newjob/form";
import { texts } from "@/pages/jobs/newjob/texts";
import { ProblemNote } from "@/parts/ProblemNote";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

/** More classes are only counted. */
const MOST_CLASSES = 12;

export function PresetFields() {
  const t = useTexts(texts);
  const { draft, set, facts, problem } = useForm();
  const presets = useAll("/presets");
  if (presets.error !== null) return <ProblemNote error={presets.error} onRetry={() => void presets.refetch()} />;
  if (presets.data === undefined) return <Skeleton h={160} />;
  return (
    <Stack gap="md">
      <Select
        label={t("preset")}
        description={facts.preset?.description}
        withAsterisk
        searchable
        data={presets.data.map((one) => ({ value: one.name, label: `${one.title} (${one.name})` }))}
        value={draft.preset || null}
        onChange={(preset) => set({ preset: preset ?? "", parameters: {} })}
        error={problem("preset")}
      />
      {facts.preset !== undefined && <Parameters of={facts.preset} />}
    </Stack>
  );
}

export function Parameters({ of }: { of: Schema<"PresetView"> }) {
  return (
    <SimpleGrid cols={{ base: 1, xs: 2, md: 3 }} spacing="md">
      {of.parameters.map((parameter) => (
        <ParameterField key={parameter.name} parameter={parameter} />
      ))}
    </SimpleGrid>
  );
}

function ParameterField({ parameter }: { parameter: Schema<"ParameterView"> }) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const { draft, set, problem } = useForm();
  const value = draft.parameters[parameter.name] ?? "";
  const usual = parameter.default === null ? undefined : String(parameter.default);
  const change = (next: string) => set({ parameters: { ...draft.parameters, [parameter.name]: next } });
  const shared = {
    label: parameter.name,
    name: `parameters.${parameter.name}`,
    description: [parameter.help, rangeText(parameter, t)].filter((text) => text !== "").join(" · ") || undefined,
    placeholder: usual === undefined || usual === "" ? undefined : t("byDefault", { value: usual }),
    withAsterisk: parameter.default === null,
    // Explanations of different lengths must not push the fields out of line.
    inputWrapperOrder: ["label" as const, "input" as const, "error" as const, "description" as const],
    error: problem(`parameters.${parameter.name}`),
  };
  if (parameter.type === "choice")
    return (
      <Select
        {...shared}
        clearable
        data={parameter.choices}
        value={value || null}
        onChange={(next) => change(next ?? "")}
      />
    );
  if (parameter.type === "bool") {
    const options = [
      { value: "true", label: c("yes") },
      { value: "false", label: c("no") },
    ];
    return (
      <Select {...shared} clearable data={options} value={value || null} onChange={(next) => change(next ?? "")} />
    );
  }
  if (parameter.type === "model" || parameter.type === "dataset")
    return <AssetField kind={parameter.type} shared={shared} value={value} onChange={change} />;
  const isNumber = parameter.type === "int" || parameter.type === "float";
  return (
    <TextInput
      {...shared}
      inputMode={isNumber ? "decimal" : "text"}
      value={value}
      onChange={(event) => change(event.currentTarget.value)}
    />
  );
}

interface AssetProps {
  readonly kind: "model" | "dataset";
  readonly shared: object;
  readonly value: string;
  readonly onChange: (next: string) => void;
}

/** Registered models or data sets, with the classes of the one that is picked; own weights can be typed. */
function AssetField({ kind, shared, value, onChange }: AssetProps) {
  const t = useTexts(texts);
  const { data: assets } = useAll("/preset-assets", { kind });
  const picked = assets?.find((asset) => asset.name === value);
  const about = [picked?.format, picked?.description].filter((text) => text !== undefined && text !== "").join(" · ");
  return (
    <Stack gap={4}>
      <Autocomplete
        {...shared}
        data={assets?.map((asset) => asset.name) ?? []}
        value={value}
        onChange={onChange}
        autoComplete="off"
      />
      {about !== "" && (
        <Text size="xs" c="dimmed">
          {about}
        </Text>
      )}
      {picked !== undefined && picked.classes.length > 0 && (
        <Group gap={4} role="list" aria-label={t("classesOf", { name: picked.name })}>
          {picked.classes.slice(0, MOST_CLASSES).map((name) => (
            <Badge key={name} role="listitem" size="sm" variant="light" color="gray" tt="none">
              {name}
            </Badge>
          ))}
          {picked.classes.length > MOST_CLASSES && (
            <Text size="xs" c="dimmed">
              {t("moreClasses", { n: picked.classes.length - MOST_CLASSES })}
            </Text>
          )}
        </Group>
      )}
    </Stack>
  );
}
