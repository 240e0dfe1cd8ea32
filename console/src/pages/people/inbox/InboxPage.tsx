/** The events of the user's own jobs, volumes and shares, newest first. */
import { Badge, Button, Checkbox, Group, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { CheckCheck, Inbox, SlidersHorizontal } from "lucide-react";
import { useMemo } from "react";

import { $api, api, sent } from "@/api/client";
import { useAction } from "@/api/useAction";
import { useFilters } from "@/app/useFilters";
import { hrefOf, sentenceOf, type InboxItem } from "@/pages/people/inbox/item";
import { actions, kinds, texts } from "@/pages/people/inbox/texts";
import { DataTable, Faint, type Column } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { Moment } from "@/parts/Moment";
import { PageHeader } from "@/parts/PageHeader";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { navigation } from "@/texts/navigation";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

const FILTERS = { unread: "" };
const MOST = 200;

export default function InboxPage() {
  const page = useTexts(navigation);
  const t = useTexts(texts);
  const [filters, setFilters] = useFilters(FILTERS);
  const query = { limit: MOST, ...(filters.unread !== "" && { unread: true }) };
  const { data, error, refetch } = $api.useQuery("get", "/me/inbox", { params: { query } });
  const columns = useColumns();
  const read = useAction<number, unknown>({
    run: (until) => sent(api.POST("/me/inbox/read", { body: { until } })),
    touches: ["/me/inbox"],
    done: () => t("allRead"),
  });
  const newest = data?.items[0]?.id ?? 0;
  return (
    <>
      <PageHeader
        title={page("inbox")}
        detail={data !== undefined && (data.unread > 0 ? t("unread", { n: data.unread }) : t("allRead"))}
      >
        <Button
          variant="default"
          leftSection={<SlidersHorizontal size={15} aria-hidden />}
          renderRoot={(props) => <Link to="/settings" search={{ tab: "inbox" }} {...props} />}
        >
          {t("settings")}
        </Button>
        <Button
          leftSection={<CheckCheck size={15} aria-hidden />}
          disabled={data === undefined || data.unread === 0}
          loading={read.isPending}
          onClick={() => read.mutate(newest)}
        >
          {t("markRead")}
        </Button>
      </PageHeader>
      <Group mb="sm">
        <Checkbox
          size="xs"
          label={t("onlyUnread")}
          checked={filters.unread !== ""}
          onChange={(event) => setFilters({ unread: event.currentTarget.checked ? "yes" : "" })}
        />
      </Group>
      {error !== null && data === undefined ? (
        <ProblemNote error={error} onRetry={() => void refetch()} />
      ) : (
        <Panel p={0}>
          <DataTable
            label={page("inbox")}
            rows={data?.items}
            columns={columns}
            rowKey={(item) => String(item.id)}
            href={hrefOf}
            empty={<EmptyState icon={Inbox} title={t("empty")} hint={t("emptyHint")} />}
          />
        </Panel>
      )}
      {typeof data?.next_cursor === "string" && (
        <Text size="xs" c="dimmed" mt="xs">
          {t("more")}
        </Text>
      )}
    </>
  );
}

const COLORS: Readonly<Record<InboxItem["kind"], string>> = {
  started: "blue",
  ended: "teal",
  failed: "red",
  preempted: "orange",
  estimate: "cyan",
  idle: "yellow",
  stalled: "orange",
  storage: "orange",
  quota: "orange",
  shared: "violet",
  fleet: "gray",
};

function useColumns(): readonly Column<InboxItem>[] {
  const t = useTexts(texts);
  const kind = useTexts(kinds);
  const said = useTexts(actions);
  const format = useFormat();
  return useMemo(
    () => [
      {
        key: "what",
        title: t("what"),
        render: (item) => (
          <>
            <Group gap={6} wrap="nowrap">
              <Text size="sm" fw={item.read ? 400 : 650} component="span">
                {sentenceOf(said, item.action, item.name === "" ? item.subject : item.name)}
              </Text>
              {!item.read && (
                <Badge size="xs" variant="filled" tt="none">
                  {t("isNew")}
                </Badge>
              )}
            </Group>
            {item.text !== "" && <Faint>{item.text}</Faint>}
            {item.expected_at !== null && <Faint>{t("expected", { at: format.dateTime(item.expected_at) })}</Faint>}
            {item.receipt !== null && <Faint>{t("receipt", { n: item.receipt })}</Faint>}
          </>
        ),
      },
      {
        key: "kind",
        title: t("kind"),
        width: 150,
        wide: true,
        sort: (item) => item.kind,
        render: (item) => (
          <Badge variant="light" color={COLORS[item.kind]} tt="none" fw={500}>
            {kind(item.kind)}
          </Badge>
        ),
      },
      { key: "when", title: t("when"), width: 150, sort: (item) => item.id, render: (item) => <Moment at={item.at} /> },
    ],
    [t, kind, said, format],
  );
}
