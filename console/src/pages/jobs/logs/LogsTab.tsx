/** The live log of a job: the choice of attempt and rank, a search, and the lines. */
import { Alert, Button, Collapse, Stack, Text } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { ArrowDownToLine, ScrollText } from "lucide-react";
import { useEffect, useState, useSyncExternalStore } from "react";

import type { Schema } from "@/api/client";
import { useFilters } from "@/app/useFilters";
import classes from "@/pages/jobs/logs/Logs.module.css";
import { LogTools } from "@/pages/jobs/logs/LogTools";
import { LogView } from "@/pages/jobs/logs/LogView";
import { ServerSearch } from "@/pages/jobs/logs/ServerSearch";
import { useLog, type Log } from "@/pages/jobs/logs/useLog";
import { useMatches } from "@/pages/jobs/logs/useMatches";
import { texts } from "@/pages/jobs/logs/texts";
import { EmptyState } from "@/parts/EmptyState";
import { ProblemNote } from "@/parts/ProblemNote";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

const PLACE = { attempt: "", rank: "0", line: "", find: "" } as const;

export function LogsTab({ job }: { job: Schema<"JobView"> }) {
  const t = useTexts(texts);
  const [place, setPlace] = useFilters(PLACE);
  const attempt = Math.min(Number(place.attempt) || job.attempt, job.attempt);
  const rank = Math.min(Number(place.rank) || 0, job.nodes - 1);
  const log = useLog(job.id, attempt, rank);
  const [isSearchOpen, setSearchOpen] = useState(false);
  if (job.attempt === 0) return <EmptyState icon={ScrollText} title={t("nothingYet")} hint={t("notStarted")} />;
  return (
    <Stack gap="xs">
      <Reader
        job={job}
        log={log}
        attempt={attempt}
        rank={rank}
        line={Number(place.line) || undefined}
        find={place.find}
        onPlace={setPlace}
        isSearchOpen={isSearchOpen}
        onSearchOpen={setSearchOpen}
      />
    </Stack>
  );
}

export type LogPlace = {
  readonly attempt?: string;
  readonly rank?: string;
  readonly line?: string;
  readonly find?: string;
};

interface ReaderProps {
  readonly job: Schema<"JobView">;
  readonly log: Log;
  readonly attempt: number;
  readonly rank: number;
  readonly line: number | undefined;
  readonly find: string;
  readonly onPlace: (place: LogPlace) => void;
  readonly isSearchOpen: boolean;
  readonly onSearchOpen: (open: boolean) => void;
}

function Reader({ job, log, attempt, rank, line, find, onPlace, isSearchOpen, onSearchOpen }: ReaderProps) {
  const t = useTexts(texts);
  const [typed, setTyped] = useState(find);
  const matches = useMatches(log.store, typed);
  const [follow, setFollow] = useState(line === undefined);
  const [wrap, setWrap] = useState(false);
  const [target, setTarget] = useState({ line, turn: 0 });
  const keep = useDebouncedCallback((query: string) => onPlace({ find: query }), 300);
  useEffect(() => {
    if (line !== undefined) setFollow(false);
    setTarget((before) => ({ line, turn: before.turn + 1 }));
  }, [line, attempt, rank]);

  function goTo(number: number) {
    setFollow(false);
    setTarget((before) => ({ line: number, turn: before.turn + 1 }));
  }

  return (
    <>
      <LogTools
        job={job}
        log={log}
        attempt={attempt}
        rank={rank}
        onPlace={onPlace}
        typed={typed}
        onType={(query) => {
          setTyped(query);
          keep(query);
        }}
        matches={matches}
        onMatch={goTo}
        follow={follow}
        onFollow={setFollow}
        wrap={wrap}
        onWrap={setWrap}
        isSearchOpen={isSearchOpen}
        onSearchOpen={onSearchOpen}
      />
      <Collapse expanded={isSearchOpen}>
        <ServerSearch
          job={job.id}
          attempt={attempt}
          rank={rank}
          onFound={(found) => {
            onPlace({ attempt: String(found.attempt), rank: String(found.rank), line: String(found.line) });
            if (found.attempt === attempt && found.rank === rank) goTo(found.line);
          }}
        />
      </Collapse>
      {log.problem !== undefined && <ProblemNote error={log.problem} />}
      <LetGo log={log} />
      <div className={classes.frame}>
        <LogView
          key={`${attempt} ${rank}`}
          store={log.store}
          label={t("log", { job: job.name })}
          wrap={wrap}
          follow={follow}
          onLetGo={() => setFollow(false)}
          pattern={matches.pattern}
          target={target.line}
          targetTurn={target.turn}
        />
        <Silence log={log} />
        {!follow && (
          <Button className={classes.toEnd} leftSection={<ArrowDownToLine size={14} />} onClick={() => setFollow(true)}>
            {t("toEnd")}
          </Button>
        )}
      </div>
    </>
  );
}

/** Said over the empty window, so that nothing jumps when the first line comes. */
function Silence({ log }: { log: Log }) {
  const t = useTexts(texts);
  const lines = useSyncExternalStore(log.store.subscribe, () => log.store.count);
  if (lines > 0 || log.state === "reading" || log.problem !== undefined) return null;
  return (
    <Text pos="absolute" top={16} left={20} c="#98a2b5" size="sm">
      {log.state === "complete" ? t("endedSilently") : t("waitingForOutput")}
    </Text>
  );
}

function LetGo({ log }: { log: Log }) {
  const t = useTexts(texts);
  const format = useFormat();
  const first = useSyncExternalStore(log.store.subscribe, () => log.store.first);
  return first === 0 ? null : <Alert color="yellow">{t("letGo", { n: format.number(first) })}</Alert>;
}
