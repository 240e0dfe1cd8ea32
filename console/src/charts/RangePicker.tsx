/** The time that charts show: the last hours or days, or certain times. Marking a stretch of a chart chooses it, too. */
import { ActionIcon, Button, Group, Popover, SegmentedControl, Stack, TextInput, Tooltip } from "@mantine/core";
import { useRouter } from "@tanstack/react-router";
import { CalendarClock, Undo2 } from "lucide-react";
import { useState, type FormEvent } from "react";

import { boundsOf, isPreset, parseRange, RANGES, useRange, type Range } from "@/charts/ranges";
import { texts } from "@/charts/texts";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

export function RangePicker() {
  const t = useTexts(texts);
  const format = useFormat();
  const router = useRouter();
  const [range, setRange] = useRange();
  return (
    <Group gap={4} wrap="nowrap">
      {!isPreset(range) && (
        <Tooltip label={t("back")}>
          <ActionIcon variant="subtle" color="gray" aria-label={t("back")} onClick={() => router.history.back()}>
            <Undo2 size={15} />
          </ActionIcon>
        </Tooltip>
      )}
      <SegmentedControl
        size="xs"
        aria-label={t("range")}
        value={isPreset(range) ? range : ""}
        onChange={(value) => isPreset(value) && setRange(value)}
        data={RANGES.map((value) => ({ value, label: t(`range_${value}`) }))}
      />
      <Custom
        range={range}
        label={isPreset(range) ? undefined : `${format.dayTime(range[0] * 1000)} – ${format.dayTime(range[1] * 1000)}`}
        onChange={setRange}
      />
    </Group>
  );
}

function Custom({
  range,
  label,
  onChange,
}: {
  range: Range;
  label: string | undefined;
  onChange: (range: Range) => void;
}) {
  const t = useTexts(texts);
  const [isOpen, setOpen] = useState(false);
  return (
    <Popover opened={isOpen} onChange={setOpen} position="bottom-end" trapFocus withinPortal>
      <Popover.Target>
        {label === undefined ? (
          <ActionIcon variant="subtle" color="gray" aria-label={t("custom")} onClick={() => setOpen(!isOpen)}>
            <CalendarClock size={15} />
          </ActionIcon>
        ) : (
          <Button
            variant="light"
            size="compact-xs"
            aria-label={`${t("custom")}: ${label}`}
            onClick={() => setOpen(!isOpen)}
          >
            {label}
          </Button>
        )}
      </Popover.Target>
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
