/** One event: who, what, when, from where; what changed side by side, and everything as JSON. */
import { Badge, Button, Code, Drawer, Group, Stack, Table, Text, Title } from "@mantine/core";
import type { ReactNode } from "react";

import { usePreferences } from "@/app/preferences";
import { differences, facts, fieldName, nounOf, shown, type Detail as EventDetail } from "@/pages/people/audit/detail";
import type { EventView } from "@/pages/people/audit/useEvents";
import { texts } from "@/pages/people/audit/texts";
import { SubjectLink } from "@/parts/SubjectLink";
import { common } from "@/texts/common";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

interface Props {
  readonly event: EventView;
  readonly onClose: () => void;
  readonly onNarrow: (change: { actor?: string; subject?: string }) => void;
}

export function EventDrawer({ event, onClose, onNarrow }: Props) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const format = useFormat();
  const about: [string, ReactNode][] = [
    [t("at"), format.dateTime(event.at)],
    [t("actor"), event.actor],
    [t("action"), <code key="action">{event.action}</code>],
    [t("subject"), <SubjectLink key="subject" scope={nounOf(event)} name={event.subject} />],
    [t("source"), event.source || "–"],
  ];
  return (
    <Drawer
      opened
      onClose={onClose}
      size="lg"
      title={t("event", { id: event.id })}
      closeButtonProps={{ "aria-label": c("close") }}
    >
      <Stack>
        <Table verticalSpacing={6} layout="fixed">
          <Table.Tbody>
            {about.map(([name, value]) => (
              <Table.Tr key={name}>
                <Table.Th scope="row" w="26%" fw={500} c="dimmed">
                  {name}
                </Table.Th>
                <Table.Td style={{ overflowWrap: "anywhere" }}>{value}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
        <Group gap="xs">
          <Button variant="default" onClick={() => onNarrow({ subject: event.subject })}>
            {t("onlyThis")}
          </Button>
          <Button variant="default" onClick={() => onNarrow({ actor: event.actor })}>
            {t("onlyWho")}
          </Button>
        </Group>
        <Detail detail={event.detail} />
      </Stack>
    </Drawer>
  );
}

function Detail({ detail }: { detail: EventDetail }) {
  const t = useTexts(texts);
  if (Object.keys(detail).length === 0) {
    return (
      <Text size="sm" c="dimmed">
        {t("noDetail")}
      </Text>
    );
  }
  return (
    <>
      <Changes detail={detail} />
      <Facts detail={detail} />
      <Title order={2}>{t("asJson")}</Title>
      <Code block style={{ whiteSpace: "pre-wrap", overflowWrap: "anywhere" }}>
        {JSON.stringify(detail, null, 2)}
      </Code>
    </>
  );
}

function Changes({ detail }: { detail: EventDetail }) {
  const t = useTexts(texts);
  const { language } = usePreferences();
  const format = useFormat();
  const found = differences(detail);
  if (found.length === 0) return null;
  return (
    <>
      <Title order={2}>{t("changed")}</Title>
      <Table aria-label={t("changed")} verticalSpacing={4}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>{t("field")}</Table.Th>
            <Table.Th>{t("before")}</Table.Th>
            <Table.Th>{t("after")}</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {found.map((one) => (
            <Table.Tr key={one.field}>
              <Table.Td fw={500}>{fieldName(one.field, language)}</Table.Td>
              <Table.Td style={{ overflowWrap: "anywhere" }}>
                <del style={{ color: "var(--corral-faint)" }}>{shown(one.field, one.before, format)}</del>
              </Table.Td>
              <Table.Td style={{ overflowWrap: "anywhere" }}>{shown(one.field, one.after, format)}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </>
  );
}

function Facts({ detail }: { detail: EventDetail }) {
  const t = useTexts(texts);
  const { language } = usePreferences();
  const format = useFormat();
  const found = facts(detail);
  if (found.length === 0) return null;
  return (
    <>
      <Title order={2}>{t("detail")}</Title>
      <Table aria-label={t("detail")} verticalSpacing={4} layout="fixed">
        <Table.Tbody>
          {found.map((one) => (
            <Table.Tr key={one.field}>
              <Table.Th scope="row" w="34%" fw={500} c="dimmed">
                {fieldName(one.field, language)}
              </Table.Th>
              <Table.Td style={{ overflowWrap: "anywhere" }}>
                {shown(one.field, one.value, format)}{" "}
                {one.isChanged && (
                  <Badge size="xs" variant="light">
                    {t("isChanged")}
                  </Badge>
                )}
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </>
  );
}
