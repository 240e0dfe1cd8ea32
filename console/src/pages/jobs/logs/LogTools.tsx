/** Above the lines: which log, what to look for, how to look at it, and taking it away. */
import { ActionIcon, Button, Group, Menu, Select, Switch, Text, TextInput, Tooltip } from "@mantine/core";
import { useClipboard } from "@mantine/hooks";
import { ChevronDown, ChevronUp, Copy, Download, Search, SearchCode } from "lucide-react";
import { useState, useSyncExternalStore, type KeyboardEvent } from "react";

import { PREFIX, type Schema } from "@/api/client";
import { plainText, withoutSequences } from "@/pages/jobs/logs/ansi";
import { MOST_FOUND } from "@/pages/jobs/logs/LogStore";
import type { LogPlace } from "@/pages/jobs/logs/LogsTab";
import type { Log } from "@/pages/jobs/logs/useLog";
import type { Matches } from "@/pages/jobs/logs/useMatches";
import { texts } from "@/pages/jobs/logs/texts";
import { toastDone } from "@/parts/toasts";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

const COPIED_LINES = 10_000;

export interface LogToolsProps {
  readonly job: Schema<"JobView">;
  readonly log: Log;
  readonly attempt: number;
  readonly rank: number;
  readonly onPlace: (place: LogPlace) => void;
  readonly typed: string;
  readonly onType: (query: string) => void;
  readonly matches: Matches;
  /** Go to a line, counted from 1. */
  readonly onMatch: (line: number) => void;
  readonly follow: boolean;
  readonly onFollow: (follow: boolean) => void;
  readonly wrap: boolean;
  readonly onWrap: (wrap: boolean) => void;
  readonly isSearchOpen: boolean;
  readonly onSearchOpen: (open: boolean) => void;
}

export function LogTools(props: LogToolsProps) {
  const t = useTexts(texts);
  return (
    <Group gap="xs" justify="space-between">
      <Group gap="xs">
        <Pickers {...props} />
        <SearchField {...props} />
        <Tooltip label={t("wholeHint")}>
          <Button
            variant={props.isSearchOpen ? "light" : "default"}
            leftSection={<SearchCode size={14} />}
            aria-expanded={props.isSearchOpen}
            onClick={() => props.onSearchOpen(!props.isSearchOpen)}
          >
            {t("whole")}
          </Button>
        </Tooltip>
      </Group>
      <Group gap="sm">
        <LineCount log={props.log} />
        <Switch
          size="xs"
          label={t("follow")}
          checked={props.follow}
          onChange={(event) => props.onFollow(event.currentTarget.checked)}
        />
        <Switch
          size="xs"
          label={t("wrap")}
          checked={props.wrap}
          onChange={(event) => props.onWrap(event.currentTarget.checked)}
        />
        <CopyLines log={props.log} />
        <Downloads {...props} />
      </Group>
    </Group>
  );
}

function Pickers({ job, attempt, rank, onPlace }: LogToolsProps) {
  const t = useTexts(texts);
  const attempts = Array.from({ length: job.attempt }, (_, index) => ({
    value: String(index + 1),
    label: t("attemptNumber", { n: index + 1 }),
  })).reverse();
  const ranks = Array.from({ length: job.nodes }, (_, index) => ({
    value: String(index),
    label: t("rankNumber", { n: index }),
  }));
  return (
    <>
      {attempts.length > 1 && (
        <Select
          size="xs"
          w={130}
          aria-label={t("attempt")}
          data={attempts}
          value={String(attempt)}
          allowDeselect={false}
          onChange={(value) => onPlace({ attempt: Number(value) === job.attempt ? "" : (value ?? ""), line: "" })}
        />
      )}
      {ranks.length > 1 && (
        <Select
          size="xs"
          w={110}
          aria-label={t("rank")}
          data={ranks}
          value={String(rank)}
          allowDeselect={false}
          searchable
          onChange={(value) => onPlace({ rank: value ?? "0", line: "" })}
        />
      )}
    </>
  );
}

function SearchField({ typed, onType, matches, onMatch }: LogToolsProps) {
  const t = useTexts(texts);
  const format = useFormat();
  const [at, setAt] = useState(-1);
  const count = matches.lines.length;
  function go(step: number) {
    if (count === 0) return;
    const next = at < 0 ? (step > 0 ? 0 : count - 1) : (at + step + count) % count;
    setAt(next);
    onMatch((matches.lines[next] ?? 0) + 1);
  }
  function onKey(event: KeyboardEvent) {
    if (event.key === "Enter") go(event.shiftKey ? -1 : 1);
    else if (event.key === "Escape") onType("");
  }
  const text = matches.isSearching
    ? "…"
    : count === 0
      ? t("noMatches")
      : t(matches.isCut ? "manyMatches" : "matches", {
          at: format.number(Math.max(0, at) + 1),
          n: format.number(matches.isCut ? MOST_FOUND : count),
        });
  return (
    <Group gap={4} wrap="nowrap">
      <TextInput
        size="xs"
        w={200}
        aria-label={t("search")}
        placeholder={t("searchPlaceholder")}
        leftSection={<Search size={14} />}
        value={typed}
        onChange={(event) => {
          setAt(-1);
          onType(event.currentTarget.value);
        }}
        onKeyDown={onKey}
      />
      {matches.pattern !== undefined && (
        <>
          <Text size="xs" c="dimmed" className="num" role="status">
            {text}
          </Text>
          <ActionIcon
            variant="subtle"
            color="gray"
            aria-label={t("previous")}
            disabled={count === 0}
            onClick={() => go(-1)}
          >
            <ChevronUp size={16} />
          </ActionIcon>
          <ActionIcon variant="subtle" color="gray" aria-label={t("next")} disabled={count === 0} onClick={() => go(1)}>
            <ChevronDown size={16} />
          </ActionIcon>
        </>
      )}
    </Group>
  );
}

function LineCount({ log }: { log: Log }) {
  const t = useTexts(texts);
  const format = useFormat();
  const lines = useSyncExternalStore(log.store.subscribe, () => log.store.count);
  return (
    <Text size="xs" c="dimmed" className="num">
      {t("lines", { n: format.number(lines) })} · {t(log.state)}
    </Text>
  );
}

function CopyLines({ log }: { log: Log }) {
  const t = useTexts(texts);
  const format = useFormat();
  const clipboard = useClipboard();
  const lines = useSyncExternalStore(log.store.subscribe, () => log.store.count);
  const label = t("copyLast", { n: format.number(Math.min(lines, COPIED_LINES)) });
  return (
    <Tooltip label={label}>
      <ActionIcon
        variant="default"
        size="md"
        aria-label={label}
        disabled={lines === 0}
        onClick={() => {
          const raw = withoutSequences(log.store.text(lines - COPIED_LINES, lines));
          const shown = plainText(raw);
          clipboard.copy(shown);
          toastDone(t(shown === raw ? "copied" : "copiedAsShown"));
        }}
      >
        <Copy size={15} />
      </ActionIcon>
    </Tooltip>
  );
}

function Downloads({ job, attempt, rank }: LogToolsProps) {
  const t = useTexts(texts);
  const url = `${PREFIX}/jobs/${job.id}/logs/download`;
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <ActionIcon variant="default" size="md" aria-label={t("downloadThis")}>
          <Download size={15} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item component="a" href={`${url}?attempt=${attempt}&rank=${rank}`} download>
          {t("downloadThis")}
        </Menu.Item>
        <Menu.Item component="a" href={`${url}?attempt=all&rank=all`} download>
          {t("downloadAll")}
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
