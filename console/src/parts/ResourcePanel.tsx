/** The resource panel: jobs that run and wait, and the GPUs behind them, of the viewer, the viewer's group, or all users. */
import { Group, SegmentedControl, Skeleton, Table, Text } from "@mantine/core";
import { memo, useState } from "react";

import { $api, type Schema } from "@/api/client";
import { useMe } from "@/app/session";
import { remember, remembered } from "@/app/storage";
import { OfAll } from "@/parts/OfAll";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { texts } from "@/parts/resources.texts";
import { kinds } from "@/texts/common";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

const WHOSE = ["me", "group", "cluster"] as const;
const BY = ["kind", "model"] as const;
const COLUMNS = ["running", "queued", "occupied", "total", "free", "gap"] as const;

type Whose = (typeof WHOSE)[number];
type By = (typeof BY)[number];
interface Row extends Pick<Schema<"PanelModelView">, (typeof COLUMNS)[number]> {
  readonly name: string;
}

const ResourcePanel = memo(function ResourcePanel({ mb }: { mb?: string }) {
  const t = useTexts(texts);
  const kindLabel = useTexts(kinds);
  const me = useMe();
  const [whose, setWhose] = useRemembered<Whose>("resources.whose", WHOSE, "cluster");
  const [by, setBy] = useRemembered<By>("resources.by", BY, "kind");
  const { group } = me;
  const shown = whose === "group" && group === null ? "cluster" : whose;
  const query = shown === "me" ? { user: me.name } : shown === "group" && group !== null ? { group } : {};
  const { data, error, refetch } = $api.useQuery("get", "/panel", { params: { query: { ...query, limit: 1 } } });
  const rows: readonly Row[] | undefined =
    by === "kind"
      ? data?.kinds.map((row) => ({ ...row, name: kindLabel(row.kind) }))
      : data?.models.map((row) => ({ ...row, name: row.model }));
  return (
    <Panel
      title={t("title")}
      mb={mb}
      tools={
        <Group gap="xs">
          <OfAll />
          <SegmentedControl
            size="xs"
            aria-label={t("whose")}
            value={shown}
            onChange={setWhose}
            data={WHOSE.filter((one) => one !== "group" || group !== null).map((value) => ({
              value,
              label: t(value, { name: group ?? "" }),
            }))}
          />
          <SegmentedControl
            size="xs"
            aria-label={t("by")}
            value={by}
            onChange={setBy}
            data={[
              { value: "kind", label: t("byKind") },
              { value: "model", label: t("byModel") },
            ]}
          />
        </Group>
      }
    >
      {error !== null && data === undefined ? (
        <ProblemNote error={error} onRetry={() => void refetch()} />
      ) : rows === undefined ? (
        <Skeleton h={140} />
      ) : rows.length === 0 ? (
        <Text size="sm" c="dimmed">
          {t("noModels")}
        </Text>
      ) : (
        <Rows rows={rows} head={t(by)} />
      )}
    </Panel>
  );
});

export default ResourcePanel;

function Rows({ rows, head }: { rows: readonly Row[]; head: string }) {
  const t = useTexts(texts);
  const format = useFormat();
  return (
    <Table.ScrollContainer minWidth={360} type="native" tabIndex={0} aria-label={t("title")} role="group">
      <Table fz="xs" horizontalSpacing={6} verticalSpacing={5} aria-label={t("title")}>
        <Table.Thead>
          <Table.Tr c="dimmed">
            <Table.Th fw={500}>{head}</Table.Th>
            {COLUMNS.map((column) => (
              <Table.Th key={column} fw={500} ta="right" title={t(`${column}Hint`)}>
                {t(column)}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map((row) => (
            <Table.Tr key={row.name}>
              <Table.Th scope="row" fw={500}>
                {row.name}
              </Table.Th>
              {COLUMNS.map((column) => (
                <Table.Td key={column} ta="right" className="num">
                  {format.number(row[column])}
                </Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}

/** A choice that the browser remembers between visits. */
function useRemembered<T extends string>(
  name: string,
  allowed: readonly T[],
  otherwise: T,
): [value: T, set: (value: string) => void] {
  const isAllowed = (value: unknown): value is T => allowed.some((one) => one === value);
  const [value, setValue] = useState<T>(() => remembered(name, isAllowed) ?? otherwise);
  return [
    value,
    (next) => {
      if (!isAllowed(next)) return;
      setValue(next);
      remember(name, next);
    },
  ];
}
