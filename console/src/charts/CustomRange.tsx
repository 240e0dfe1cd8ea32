/** The form for certain times, below its button. */
import { Button, Popover, Stack, TextInput } from "@mantine/core";
import { useState, type FormEvent } from "react";

import { boundsOf, parseRange, type Range } from "@/charts/ranges";
import { texts } from "@/charts/texts";
import type { Opener } from "@/parts/OpensLater";
import { useOpensAtOnce } from "@/parts/useOpensAtOnce";
import { useTexts } from "@/texts/texts";

export default function CustomRange({
  button,
  range,
  onChange,
}: {
  button: Opener;
  range: Range;
  onChange: (range: Range) => void;
}) {
  const { ref, isOpen, setOpen } = useOpensAtOnce();
  return (
    <Popover opened={isOpen} onChange={setOpen} position="bottom-end" trapFocus withinPortal>
      <Popover.Target>{button({ ref, onClick: () => setOpen(!isOpen) })}</Popover.Target>
      <Popover.Dropdown>
        {isOpen && (
          <Fields
            range={range}
            onChange={(next) => {
              onChange(next);
              setOpen(false);
            }}
          />
        )}
      </Popover.Dropdown>
    </Popover>
  );
}

function Fields({ range, onChange }: { range: Range; onChange: (range: Range) => void }) {
  const t = useTexts(texts);
  const now = Date.now();
  const bounds = boundsOf(range, now);
  const [from, setFrom] = useState(localText(bounds.since));
  const [to, setTo] = useState(localText(bounds.until ?? new Date(now).toISOString()));
  const [isWrong, setWrong] = useState(false);
  function submit(event: FormEvent) {
    event.preventDefault();
    const next = parseRange(`${from}..${to}`);
    if (next === undefined) setWrong(true);
    else onChange(next);
  }
  return (
    <form onSubmit={submit}>
      <Stack gap="xs">
        <TextInput
          type="datetime-local"
          step={1}
          size="xs"
          label={t("from")}
          value={from}
          onChange={(event) => setFrom(event.currentTarget.value)}
        />
        <TextInput
          type="datetime-local"
          step={1}
          size="xs"
          label={t("to")}
          value={to}
          error={isWrong ? t("wrongRange") : undefined}
          onChange={(event) => setTo(event.currentTarget.value)}
        />
        <Button type="submit" size="xs">
          {t("show")}
        </Button>
      </Stack>
    </form>
  );
}

/** Formats a time for the browser's field: local time without a zone. */
function localText(at: string): string {
  const moment = new Date(at);
  return new Date(moment.getTime() - moment.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}
