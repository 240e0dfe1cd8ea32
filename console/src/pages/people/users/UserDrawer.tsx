/** One user at a glance: who they are, what they hold, where they stand, and what happened to them. */
import { Anchor, Button, Drawer, Group, SimpleGrid, Skeleton, Stack, Table, Text, Title } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { Boxes, Pencil } from "lucide-react";
import type { ReactNode } from "react";

import { useAll, usePages } from "@/api/useAll";
import { AccountBadge, RoleBadge } from "@/pages/people/users/badges";
import type { User } from "@/pages/people/users/rules";
import { UserQuota } from "@/pages/people/users/UserQuota";
import { texts } from "@/pages/people/users/texts";
import { AccountBudgets } from "@/parts/AccountBudgets";
import { Faint } from "@/parts/DataTable";
import { Moment } from "@/parts/Moment";
import { ProblemNote } from "@/parts/ProblemNote";
import { RowMenu, type RowAction } from "@/parts/RowMenu";
import { common } from "@/texts/common";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

export function UserDrawer({
  name,
  user,
  actions,
  onEdit,
  onClose,
}: {
  name: string;
  user: User | undefined;
  actions: readonly RowAction[];
  onEdit: () => void;
  onClose: () => void;
}) {
  const t = useTexts(texts);
  const c = useTexts(common);
  return (
    <Drawer opened onClose={onClose} title={name} size="lg" closeButtonProps={{ "aria-label": c("close") }}>
      {user === undefined ? (
        <Text>{t("notFound", { name })}</Text>
      ) : (
        <Stack gap="lg">
          <Group justify="space-between">
            <Group gap="xs">
              <RoleBadge role={user.role} />
              <AccountBadge user={user} />
            </Group>
            <Group gap="xs">
              <Button variant="default" leftSection={<Pencil size={14} />} onClick={onEdit}>
                {c("edit")}
              </Button>
              <RowMenu label={t("actionsOf", { name })} actions={actions} />
            </Group>
          </Group>
          <Facts user={user} />
          <Part title={t("activeJobs")}>
            <Group gap="sm">
              <Text size="sm">{t("jobsCount", { n: user.active_jobs })}</Text>
              <Button
                variant="default"
                leftSection={<Boxes size={14} />}
                renderRoot={(props) => <Link to="/jobs" search={{ user: name }} {...props} />}
              >
                {t("jobsLink")}
              </Button>
            </Group>
          </Part>
          <Part title={t("quotaUse")}>
            <UserQuota name={name} />
          </Part>
          <AccountBudgets user={name} />
          <Part title={t("scores")}>
            <Scores name={name} />
          </Part>
          <Part title={t("events")}>
            <Events name={name} />
          </Part>
        </Stack>
      )}
    </Drawer>
  );
}

function Part({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section>
      <Title order={3} mb={6}>
        {title}
      </Title>
      {children}
    </section>
  );
}

function Facts({ user }: { user: User }) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const facts: readonly (readonly [string, ReactNode])[] = [
    [t("displayName"), user.display_name === "" ? "–" : user.display_name],
    [t("email"), user.email === "" ? "–" : user.email],
    [
      c("group"),
      user.group === null ? (
        t("noGroup")
      ) : (
        <Anchor size="sm" renderRoot={(props) => <Link to="/groups" search={{ open: user.group ?? "" }} {...props} />}>
          {user.group}
        </Anchor>
      ),
    ],
    [
      t("permissionGroup"),
      <Anchor
        key="permission"
        size="sm"
        renderRoot={(props) => <Link to="/permission-groups" search={{ open: user.permission_group }} {...props} />}
      >
        {user.permission_group}
      </Anchor>,
    ],
    [t("provider"), user.provider === "local" ? t("local") : user.provider],
    [t("lastSeen"), user.last_seen_at === null ? t("never") : <Moment at={user.last_seen_at} />],
    [t("since"), <Moment key="since" at={user.created_at} />],
  ];
  return (
    <SimpleGrid cols={{ base: 2, sm: 3 }} spacing="sm">
      {facts.map(([label, value]) => (
        <div key={label}>
          <Faint>{label}</Faint>
          <Text size="sm" component="div">
            {value}
          </Text>
        </div>
      ))}
    </SimpleGrid>
  );
}

function Scores({ name }: { name: string }) {
  const t = useTexts(texts);
  const format = useFormat();
  const scores = useAll("/scores");
  if (scores.error !== null) return <ProblemNote error={scores.error} onRetry={() => void scores.refetch()} />;
  if (scores.data === undefined) return <Skeleton h={40} />;
  const own = scores.data.filter((score) => score.user === name);
  if (own.length === 0) return <Faint>{t("noScores")}</Faint>;
  return (
    <>
      <Table aria-label={t("scores")}>
        <Table.Tbody>
          {own.map((score) => (
            <Table.Tr key={score.model}>
              <Table.Td>{score.model}</Table.Td>
              <Table.Td ta="right" className="num">
                {score.score.toFixed(2)}
              </Table.Td>
              <Table.Td ta="right" className="num">
                {t("usingNow", { n: format.number(score.usage) })}
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
      <Faint>{t("scoreHint")}</Faint>
    </>
  );
}

function Events({ name }: { name: string }) {
  const t = useTexts(texts);
  const events = usePages("/events", { subject: name, limit: 10 });
  if (events.error !== null) return <ProblemNote error={events.error} onRetry={events.retry} />;
  if (events.items === undefined) return <Skeleton h={80} />;
  if (events.items.length === 0) return <Faint>{t("noEvents")}</Faint>;
  return (
    <Table aria-label={t("events")}>
      <Table.Tbody>
        {events.items.slice(0, 10).map((event) => (
          <Table.Tr key={event.id}>
            <Table.Td>{event.action}</Table.Td>
            <Table.Td>{t("by", { actor: event.actor })}</Table.Td>
            <Table.Td ta="right">
              <Moment at={event.at} />
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}
