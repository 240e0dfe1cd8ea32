/** Reservations on a strip of days, by pool: each a bar that opens it, and above them how many GPUs are set aside together. */
import { ActionIcon, Box, Button, Group, SegmentedControl, Skeleton, Text, Title } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { ChevronLeft, ChevronRight } from "lucide-react";
import { useMemo } from "react";

import { useAll } from "@/api/useAll";
import { texts as maintenanceTexts } from "@/pages/scheduling/maintenance/texts";
import { occurrencesOf } from "@/pages/scheduling/maintenance/window";
import classes from "@/pages/scheduling/reservations/Calendar.module.css";
import {
  barsOf,
  levelsOf,
  moved,
  placed,
  SPANS,
  type Bar,
  type Reservation,
  type Strip,
} from "@/pages/scheduling/reservations/calendar";
import { useSpoken } from "@/pages/scheduling/reservations/spoken";
import { texts } from "@/pages/scheduling/reservations/texts";
import { useNow } from "@/parts/Moment";
import { Panel } from "@/parts/Panel";
import { grouped } from "@/pages/fleet/pools/fleet";
import { usePreferences } from "@/app/preferences";
import { states } from "@/texts/common";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

const LANE = 32;

export interface CalendarProps {
  readonly reservations: readonly Reservation[] | undefined;
  readonly strip: Strip;
  readonly span: string;
  readonly onMove: (change: { from?: string; span?: string }) => void;
  readonly onOpen: (name: string) => void;
}

export function Calendar({ reservations, strip, span, onMove, onOpen }: CalendarProps) {
  const t = useTexts(texts);
  const pools = useMemo(() => {
    const within = reservations?.filter((one) => barsOf([one], strip).length > 0);
    return within === undefined
      ? undefined
      : [...grouped(within, (one) => one.pool)].sort(([a], [b]) => (a < b ? -1 : 1));
  }, [reservations, strip]);
  const days = Number(span);
  return (
    <Panel
      title={t("calendar")}
      tools={
        <>
          <Button variant="default" size="xs" onClick={() => onMove({ from: "" })}>
            {t("today")}
          </Button>
          <ActionIcon.Group>
            <ActionIcon
              variant="default"
              size={30}
              aria-label={t("earlier")}
              onClick={() => onMove({ from: moved(strip, -days) })}
            >
              <ChevronLeft size={16} />
            </ActionIcon>
            <ActionIcon
              variant="default"
              size={30}
              aria-label={t("later")}
              onClick={() => onMove({ from: moved(strip, days) })}
            >
              <ChevronRight size={16} />
            </ActionIcon>
          </ActionIcon.Group>
          <SegmentedControl
            size="xs"
            aria-label={t("span")}
            data={SPANS.map((value) => ({ value, label: t(`span_${value}`) }))}
            value={span}
            onChange={(value) => onMove({ span: value })}
          />
        </>
      }
    >
      {pools === undefined ? (
        <Skeleton h={160} />
      ) : (
        // Reached by keyboard too, for a screen that is narrower than the strip.
        <div className={classes.scroller} tabIndex={0} role="group" aria-label={t("calendar")}>
          <div className={classes.strip}>
            <Days strip={strip} />
            {pools.map(([pool, within]) => (
              <PoolStrip key={pool} pool={pool} reservations={within} strip={strip} onOpen={onOpen} />
            ))}
            <MaintenanceStrip strip={strip} />
            {pools.length === 0 && (
              <Text size="sm" c="dimmed" py="lg" ta="center" className={classes.pool}>
                {t("nothingShown")}
              </Text>
            )}
          </div>
        </div>
      )}
      <Legend />
    </Panel>
  );
}

function Days({ strip }: { strip: Strip }) {
  const { language } = usePreferences();
  const now = useNow();
  const isLong = strip.days.length > 14;
  const format = useMemo(
    () =>
      new Intl.DateTimeFormat(
        language === "zh" ? "zh-CN" : "en-GB",
        isLong ? { day: "numeric", month: "numeric" } : { weekday: "short", day: "numeric", month: "short" },
      ),
    [language, isLong],
  );
  return (
    <div className={classes.days} aria-hidden>
      {strip.days.map((day, at) => {
        const isToday = day <= now && now < (strip.days[at + 1] ?? strip.to);
        return (
          <div key={day} className={`${classes.day} ${isToday ? classes.dayToday : ""}`}>
            <span className={classes.whole}>
              {isLong && at % 7 !== 0 && !isToday
                ? new Date(day).getDate()
                : wordsOf(format.format(day)).map((word) => <span key={word}>{word}</span>)}
            </span>
          </div>
        );
      })}
    </div>
  );
}

/** "Mon 16", "Nov": the month is left out where there is no room for it. */
function wordsOf(text: string): readonly string[] {
  const at = text.lastIndexOf(" ");
  return text.includes(" ") && at > text.indexOf(" ") ? [text.slice(0, at), text.slice(at + 1)] : [text];
}

function PoolStrip({
  pool,
  reservations,
  strip,
  onOpen,
}: {
  pool: string;
  reservations: readonly Reservation[];
  strip: Strip;
  onOpen: (name: string) => void;
}) {
  const t = useTexts(texts);
  const { data: pools } = useAll("/pools");
  const bars = useMemo(() => barsOf(reservations, strip), [reservations, strip]);
  const levels = useMemo(() => levelsOf(reservations, strip), [reservations, strip]);
  const most = Math.max(...levels.map((level) => level.gpus));
  const all = pools?.find((one) => one.name === pool)?.gpus_total;
  const height = Math.max(...bars.map((bar) => bar.lane + 1)) * LANE;
  const said = all === undefined ? t("poolMostOnly", { n: most }) : t("poolMost", { n: most, all });
  return (
    <section className={classes.pool} aria-label={t("poolTitle", { pool })}>
      <Group gap="xs" mb={4} align="baseline">
        <Title order={3} size="sm">
          {t("poolTitle", { pool })}
        </Title>
        <Text size="xs" c="dimmed">
          {said}
        </Text>
      </Group>
      <div className={classes.ground} style={{ backgroundSize: `${100 / strip.days.length}% 100%` }}>
        <svg
          className={classes.levels}
          viewBox="0 0 100 100"
          preserveAspectRatio="none"
          role="img"
          aria-label={`${t("levels")}: ${said}`}
        >
          {levels.map((level) => {
            const part = (100 * level.gpus) / Math.max(1, all ?? most);
            return (
              <rect
                key={level.from}
                className={classes.level}
                x={100 * level.from}
                width={100 * (level.to - level.from)}
                y={100 - part}
                height={part}
              />
            );
          })}
        </svg>
        <ul className={classes.lanes} style={{ height }} aria-label={t("inPool", { pool })}>
          {bars.map((bar) => (
            <BarItem key={bar.reservation.name} bar={bar} onOpen={onOpen} />
          ))}
        </ul>
        <NowLine strip={strip} />
      </div>
    </section>
  );
}

/** When nodes have no jobs; a bar opens its window. */
function MaintenanceStrip({ strip }: { strip: Strip }) {
  const t = useTexts(maintenanceTexts);
  const ts = useTexts(states);
  const format = useFormat();
  const { data: windows } = useAll("/maintenance-windows");
  const bars = useMemo(() => {
    const found = [...occurrencesOf(windows ?? [], strip)].sort((one, other) => one.since - other.since);
    return placed(found, (one) => [one.since, one.until] as const, strip);
  }, [windows, strip]);
  if (bars.length === 0) return null;
  const height = Math.max(...bars.map(([, place]) => place.lane + 1)) * LANE;
  return (
    <section className={classes.pool} aria-label={t("onCalendar")}>
      <Title order={3} size="sm" mb={4}>
        {t("onCalendar")}
      </Title>
      <div className={classes.ground} style={{ backgroundSize: `${100 / strip.days.length}% 100%` }}>
        <ul className={classes.lanes} style={{ height }} aria-label={t("inStrip")}>
          {bars.map(([{ window, since, until }, place]) => {
            // Later times of a repeated window are still to come.
            const state = since === Date.parse(window.since) ? window.state : "upcoming";
            const nodes = window.nodes.join(", ");
            const when = t("fromUntil", { from: format.dayTime(since), until: format.dayTime(until) });
            const said = t("bar", { name: window.name, nodes, when, state: ts(state) });
            const looks = [
              classes.button,
              classes.maintenance,
              state === "upcoming" && classes.upcomingMaintenance,
              place.isCutLeft && classes.cutLeft,
              place.isCutRight && classes.cutRight,
            ];
            return (
              <li
                key={`${window.name} ${since}`}
                className={classes.bar}
                style={{ left: `${100 * place.left}%`, width: `${100 * place.width}%`, top: place.lane * LANE }}
              >
                <Link
                  to="/maintenance"
                  search={{ open: window.name }}
                  className={looks.filter(Boolean).join(" ")}
                  title={said}
                  aria-label={said}
                >
                  <b>{window.name}</b>
                  <span>{nodes}</span>
                </Link>
              </li>
            );
          })}
        </ul>
        <NowLine strip={strip} />
      </div>
    </section>
  );
}

function BarItem({ bar, onOpen }: { bar: Bar; onOpen: (name: string) => void }) {
  const spoken = useSpoken();
  const { reservation } = bar;
  const looks = [
    classes.button,
    classes[reservation.state],
    bar.isCutLeft && classes.cutLeft,
    bar.isCutRight && classes.cutRight,
  ];
  return (
    <li
      className={classes.bar}
      style={{ left: `${100 * bar.left}%`, width: `${100 * bar.width}%`, top: bar.lane * LANE }}
    >
      <Box
        component="button"
        type="button"
        className={looks.filter(Boolean).join(" ")}
        title={spoken.whole(reservation)}
        onClick={() => onOpen(reservation.name)}
      >
        <b>{reservation.name}</b>
        <span className="num">{spoken.gpus(reservation)}</span>
        <span>{spoken.who(reservation)}</span>
        <span className="visually-hidden">{spoken.rest(reservation)}</span>
      </Box>
    </li>
  );
}

function NowLine({ strip }: { strip: Strip }) {
  const t = useTexts(texts);
  const now = useNow();
  if (now < strip.from || now >= strip.to) return null;
  const left = (100 * (now - strip.from)) / (strip.to - strip.from);
  return <div className={classes.now} style={{ left: `${left}%` }} title={t("now")} aria-hidden />;
}

function Legend() {
  const ts = useTexts(states);
  return (
    <Group gap="md" mt="sm" aria-hidden>
      {(["active", "upcoming", "standing", "over"] as const).map((state) => (
        <Group key={state} gap={6}>
          <Box className={`${classes.button} ${classes.mark} ${classes[state]}`} w={14} h={12} p={0} />
          <Text size="xs" c="dimmed">
            {ts(state)}
          </Text>
        </Group>
      ))}
    </Group>
  );
}
