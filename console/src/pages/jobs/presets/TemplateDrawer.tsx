/** The content of a preset: its parameters, and the template as it was written. */
import { Code, Drawer, Skeleton, Stack, Table, Text } from "@mantine/core";

import { $api, type Schema } from "@/api/client";
import { texts } from "@/pages/jobs/presets/texts";
import { CopyText } from "@/parts/CopyText";
import { ProblemNote } from "@/parts/ProblemNote";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

export function TemplateDrawer({ name, onClose }: { name: string; onClose: () => void }) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const { data, error, refetch } = $api.useQuery(
    "get",
    "/presets/{preset}",
    { params: { path: { preset: name } } },
    { enabled: name !== "", retry: false },
  );
  return (
    <Drawer
      opened={name !== ""}
      onClose={onClose}
      size="xl"
      title={t("templateTitle", { name })}
      closeButtonProps={{ "aria-label": c("close") }}
    >
      {error !== null && <ProblemNote error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Skeleton h={300} />}
      {data !== undefined && (
        <Stack gap="md">
          <Text size="sm">{data.description}</Text>
          <Parameters of={data} />
          <Text size="sm" fw={600}>
            {t("yaml")}
          </Text>
          <Code block tabIndex={0} aria-label={t("yaml")}>
            {data.yaml}
          </Code>
          <CopyText text={`corral preset show ${data.name} --yaml`} label={t("copyYaml")} />
        </Stack>
      )}
    </Drawer>
  );
}

function Parameters({ of }: { of: Schema<"PresetView"> }) {
  const t = useTexts(texts);
  return (
    <Table aria-label={t("parameters")} verticalSpacing={4}>
      <Table.Thead>
        <Table.Tr>
          <Table.Th>{t("parameter")}</Table.Th>
          <Table.Th>{t("usual")}</Table.Th>
          <Table.Th>{t("allowed")}</Table.Th>
          <Table.Th>{t("what")}</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {of.parameters.map((parameter) => (
          <Table.Tr key={parameter.name}>
            <Table.Td>
              <Code>{parameter.name}</Code>
            </Table.Td>
            <Table.Td>{parameter.default === null ? t("mustBeGiven") : String(parameter.default) || "–"}</Table.Td>
            <Table.Td>{allowed(parameter)}</Table.Td>
            <Table.Td>{parameter.help}</Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}

function allowed({ type, choices, min, max }: Schema<"ParameterView">): string {
  if (choices.length > 0) return choices.join(", ");
  const range = min === null && max === null ? "" : ` ${min ?? ""} … ${max ?? ""}`;
  return `${type}${range}`;
}
