/** Every line of every attempt and rank that matches, searched by the server; a click goes there. */
import { Button, Checkbox, Group, Stack, Text, TextInput, UnstyledButton } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";

import { api, sent, type Schema } from "@/api/client";
import type { Problem } from "@/api/problem";
import { plainText } from "@/pages/jobs/logs/ansi";
import classes from "@/pages/jobs/logs/Logs.module.css";
import { texts } from "@/pages/jobs/logs/texts";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { common } from "@/texts/common";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

type Match = Schema<"LogMatchView">;
type Matches = Schema<"ListView_LogMatchView_">;

interface Question {
  readonly q: string;
  readonly regex: boolean;
  readonly ignore_case: boolean;
  readonly attempt: string;
  readonly rank: string;
}

interface Props {
  readonly job: string;
  readonly attempt: number;
  readonly rank: number;
  readonly onFound: (match: Match) => void;
}

export function ServerSearch({ job, attempt, rank, onFound }: Props) {
  const t = useTexts(texts);
  const [text, setText] = useState("");
  const [regex, setRegex] = useState(false);
  const [ignoreCase, setIgnoreCase] = useState(true);
  const [everywhere, setEverywhere] = useState(false);
  const [question, setQuestion] = useState<Question>();
  function ask(event: FormEvent) {
    event.preventDefault();
    if (text === "") return;
    setQuestion({
      q: text,
      regex,
      ignore_case: ignoreCase,
      attempt: everywhere ? "all" : String(attempt),
      rank: everywhere ? "all" : String(rank),
    });
  }
  return (
    <Panel p="sm">
      <form onSubmit={ask}>
        <Group gap="sm" align="end">
          <TextInput
            size="xs"
            w={280}
            label={t("pattern")}
            value={text}
            maxLength={1000}
            onChange={(event) => setText(event.currentTarget.value)}
          />
          <Checkbox
            size="xs"
            mb={6}
            label={t("regex")}
            checked={regex}
            onChange={(event) => setRegex(event.currentTarget.checked)}
          />
          <Checkbox
            size="xs"
            mb={6}
            label={t("ignoreCase")}
            checked={ignoreCase}
            onChange={(event) => setIgnoreCase(event.currentTarget.checked)}
          />
          <Checkbox
            size="xs"
            mb={6}
            label={t("everywhere")}
            checked={everywhere}
            onChange={(event) => setEverywhere(event.currentTarget.checked)}
          />
          <Button type="submit" disabled={text === ""}>
            {t("find")}
          </Button>
        </Group>
      </form>
      {question !== undefined && <Results job={job} question={question} onFound={onFound} />}
    </Panel>
  );
}

function Results({ job, question, onFound }: { job: string; question: Question; onFound: (match: Match) => void }) {
  const t = useTexts(texts);
  const tc = useTexts(common);
  const format = useFormat();
  const answer = useInfiniteQuery<Matches, Problem, { pages: Matches[] }, readonly unknown[], string | undefined>({
    // Not by its path: what is searched was asked for once, and news do not ask again.
    queryKey: ["log-search", job, question],
    queryFn: ({ pageParam }) =>
      sent(
        api.GET("/jobs/{job}/logs/search", {
          params: { path: { job }, query: { ...question, limit: 100, cursor: pageParam } },
        }),
      ),
    initialPageParam: undefined,
    getNextPageParam: (last) => last.next_cursor ?? undefined,
    retry: false,
  });
  if (answer.error !== null) return <ProblemNote error={answer.error} onRetry={() => void answer.refetch()} />;
  const found = answer.data?.pages.flatMap((page) => page.items);
  const isBusy = answer.isPending || answer.isFetchingNextPage;
  return (
    <Stack gap={2} mt="sm">
      <Text size="xs" c="dimmed" role="status">
        {found === undefined
          ? tc("loading")
          : found.length === 0 && !answer.hasNextPage
            ? t("foundNone")
            : t("foundSome", { n: found.length })}
      </Text>
      <Stack
        gap={0}
        mah={240}
        style={{ overflowY: "auto" }}
        component="ul"
        p={0}
        m={0}
        aria-label={t("results")}
        tabIndex={0}
      >
        {found?.map((match) => (
          <li key={`${match.attempt} ${match.rank} ${match.line}`} style={{ listStyle: "none" }}>
            <UnstyledButton className={classes.found} onClick={() => onFound(match)}>
              <Text span size="xs" c="dimmed" className="num" mr="sm">
                {t("attemptNumber", { n: match.attempt })} · {t("rankNumber", { n: match.rank })} ·{" "}
                {t("line", { n: format.number(match.line) })}
              </Text>
              {plainText(match.text)}
            </UnstyledButton>
          </li>
        ))}
      </Stack>
      {(answer.hasNextPage || isBusy) && (
        <Group>
          <Button variant="default" loading={isBusy} onClick={() => void answer.fetchNextPage()}>
            {tc("loadMore")}
          </Button>
        </Group>
      )}
    </Stack>
  );
}
