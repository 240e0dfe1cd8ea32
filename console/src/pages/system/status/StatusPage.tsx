/** Each part of the platform: the server with its store and workers, and per cluster the engine and the daemons in use. */
import { Code, Drawer, ScrollArea, Skeleton, Stack, Switch, Text, UnstyledButton } from "@mantine/core";
import { CircleCheck } from "lucide-react";
import { useMemo } from "react";

import { $api, type Schema } from "@/api/client";
import { useFilters } from "@/app/useFilters";
import { texts } from "@/pages/system/status/texts";
import { DataTable, Faint, type Column } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { Moment } from "@/parts/Moment";
import { PageHeader } from "@/parts/PageHeader";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { StateBadge } from "@/parts/StateBadge";
import { common } from "@/texts/common";
import { navigation } from "@/texts/navigation";
import { useTexts } from "@/texts/texts";

type Part = Schema<"PartStatusView">;

const REFRESH_MS = 5_000;
const FILTERS = { failing: "", log: "" };

export default function StatusPage() {
  const page = useTexts(navigation);
  const t = useTexts(texts);
  const [filters, setFilters] = useFilters(FILTERS);
  const { data, error, refetch } = $api.useQuery("get", "/parts", {}, { refetchInterval: REFRESH_MS });
  const parts = data?.items;
  const failing = parts?.filter((part) => !part.healthy) ?? [];
  const summary =
    parts === undefined
      ? undefined
      : t(failing.length === 0 ? "allWork" : "summary", { n: parts.length, failing: failing.length });
  return (
    <>
      <PageHeader title={page("cluster")} detail={summary}>
        <Switch
          label={t("onlyFailing")}
          checked={filters.failing !== ""}
          onChange={(event) => setFilters({ failing: event.currentTarget.checked ? "yes" : "" })}
        />
      </PageHeader>
      {error !== null && parts === undefined ? (
        <ProblemNote error={error} onRetry={() => void refetch()} />
      ) : parts === undefined ? (
        <Skeleton h={320} />
      ) : (
        <Parts parts={filters.failing === "" ? parts : failing} onLog={(name) => setFilters({ log: name })} />
      )}
      {filters.log !== "" && <LogDrawer part={filters.log} onClose={() => setFilters({ log: "" })} />}
    </>
  );
}

function Parts({ parts, onLog }: { parts: readonly Part[]; onLog: (name: string) => void }) {
  const t = useTexts(texts);
  const columns = useColumns(onLog);
  if (parts.length === 0) return <EmptyState icon={CircleCheck} title={t("noneFailing")} hint={t("noneFailingHint")} />;
  const clusters = [...new Set(parts.map((part) => part.cluster).filter((name) => name !== null))];
  const groups = [
    {
      title: t("platform"),
      detail: t("platformDetail"),
      rows: parts.filter((part) => part.cluster === null && part.kind !== "worker"),
    },
    ...clusters.map((name) => ({
      title: t("clusterPanel", { name }),
      detail: t("clusterDetail"),
      rows: parts.filter((part) => part.cluster === name),
    })),
    { title: t("workers"), detail: t("workersDetail"), rows: parts.filter((part) => part.kind === "worker") },
  ];
  return (
    <Stack>
      {groups
        .filter(({ rows }) => rows.length > 0)
        .map(({ title, detail, rows }) => (
          <Panel
            key={title}
            title={title}
            tools={
              <Text size="sm" c="dimmed">
                {detail}
              </Text>
            }
          >
            <DataTable label={title} rows={rows} columns={columns} rowKey={(part) => part.name} />
          </Panel>
        ))}
    </Stack>
  );
}

function useColumns(onLog: (name: string) => void): readonly Column<Part>[] {
  const t = useTexts(texts);
  return useMemo<Column<Part>[]>(
    () => [
      {
        key: "part",
        title: t("part"),
        render: (part) => (
          <>
            {part.name}
            {part.kind !== part.name && (
              <Faint>{part.node === null ? t(part.kind) : `${t(part.kind)} · ${part.node}`}</Faint>
            )}
            {!part.healthy && (
              <Text size="xs" hiddenFrom="sm" style={{ overflowWrap: "anywhere" }}>
                {part.detail}
              </Text>
            )}
          </>
        ),
        sort: (part) => part.name,
      },
      {
        key: "state",
        title: t("state"),
        render: (part) => <StateBadge state={part.healthy ? "ok" : "failed"} />,
        sort: (part) => (part.healthy ? 1 : 0),
      },
      { key: "since", title: t("since"), render: (part) => <Moment at={part.since} />, sort: (part) => part.since },
      {
        key: "restarts",
        title: t("restarts"),
        numeric: true,
        render: (part) => part.restarts,
        sort: (part) => part.restarts,
      },
      {
        key: "detail",
        title: t("detail"),
        wide: true,
        render: (part) => (
          <Text size="sm" c={part.healthy ? "dimmed" : undefined} style={{ overflowWrap: "anywhere" }}>
            {part.detail || "–"}
          </Text>
        ),
      },
      {
        key: "error",
        title: t("lastError"),
        wide: true,
        render: (part) => (
          <>
            <Text size="sm" style={{ overflowWrap: "anywhere" }}>
              {part.last_error ?? "–"}
            </Text>
            {part.last_error_at !== null && (
              <Faint>
                <Moment at={part.last_error_at} />
              </Faint>
            )}
          </>
        ),
      },
      {
        key: "log",
        title: t("log"),
        render: (part) =>
          part.log === null ? (
            "–"
          ) : (
            <UnstyledButton
              fz="sm"
              c="var(--mantine-color-anchor)"
              aria-label={t("logOf", { part: part.name })}
              onClick={() => onLog(part.name)}
            >
              {t("log")}
            </UnstyledButton>
          ),
      },
    ],
    [t, onLog],
  );
}

function LogDrawer({ part, onClose }: { part: string; onClose: () => void }) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const { data, error, refetch } = $api.useQuery(
    "get",
    "/parts/{part}/log",
    { params: { path: { part } }, parseAs: "text" },
    { refetchInterval: REFRESH_MS },
  );
  return (
    <Drawer
      opened
      onClose={onClose}
      position="right"
      size="xl"
      title={t("logOf", { part })}
      closeButtonProps={{ "aria-label": c("close") }}
    >
      {error !== null && data === undefined ? (
        <ProblemNote error={error} onRetry={() => void refetch()} />
      ) : data === undefined ? (
        <Skeleton h={160} />
      ) : data === "" ? (
        <Text c="dimmed">{t("logEmpty", { part })}</Text>
      ) : (
        <ScrollArea>
          <Code block tabIndex={0} aria-label={t("logOf", { part })}>
            {data}
          </Code>
        </ScrollArea>
      )}
    </Drawer>
  );
}
