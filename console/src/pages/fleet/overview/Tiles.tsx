/** The key figures, each with where it comes from and where it leads. */
import { Skeleton } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import type { ComponentProps, ReactNode } from "react";

import { $api, type Schema } from "@/api/client";
import { useClusterSearch } from "@/app/cluster";
import { useIsOperator, useMe } from "@/app/session";
import { SERIES_COLORS } from "@/charts/colors";
import { seriesOf, sparkOf, type Metrics } from "@/charts/series";
import { Sparkline } from "@/charts/Sparkline";
import classes from "@/pages/fleet/overview/Overview.module.css";
import { texts } from "@/pages/fleet/overview/texts";
import { Stat } from "@/parts/Stat";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

/** The end of the scale of temperatures. */
const HOT_CELSIUS = 100;

type Overview = Schema<"OverviewView">;
interface TileProps {
  readonly now: Overview;
  readonly trends: Metrics | undefined;
}

export function Tiles({ now, trends }: { now: Overview | undefined; trends: Metrics | undefined }) {
  const t = useTexts(texts);
  const isOperator = useIsOperator();
  if (now === undefined) {
    return (
      <div className={classes.tiles} aria-busy="true">
        {Array.from({ length: 7 }, (_, at) => (
          <Skeleton key={at} h={92} />
        ))}
      </div>
    );
  }
  return (
    <section className={classes.tiles} aria-label={t("figures")}>
      <GpuTiles now={now} trends={trends} />
      <HostTile now={now} />
      <QueueTile now={now} trends={trends} />
      {isOperator ? <AlertTile now={now} /> : <MyJobsTile />}
    </section>
  );
}

interface SparkProps extends Pick<ComponentProps<typeof Sparkline>, "label" | "usualTop" | "format"> {
  readonly trends: Metrics | undefined;
  readonly metric: string;
  readonly color: number;
}

function Spark({ trends, metric, color, ...scale }: SparkProps) {
  return <Sparkline {...scale} values={sparkOf(seriesOf(trends, metric))} color={SERIES_COLORS[color]} width={44} />;
}

function GpuTiles({ now, trends }: TileProps) {
  const t = useTexts(texts);
  const format = useFormat();
  const to = useIsOperator() ? "/gpus" : undefined;
  const { power_watts: watts, power_limit_watts: limit } = now;
  const kilo = watts !== null && watts >= 1000;
  return (
    <>
      <Tile to={to}>
        <Stat
          label={t("inUse")}
          value={format.number(now.gpus_allocated)}
          unit={t("ofAll", { n: now.gpus })}
          detail={[
            t("allocation", { part: format.percent(now.allocation) }),
            ...(now.gpus_taken > 0 ? [t("takenByOthers", { n: now.gpus_taken })] : []),
          ].join(" · ")}
          chart={
            <Spark
              trends={trends}
              metric="gpus_held"
              color={0}
              label={t("inUse")}
              usualTop={now.gpus}
              format={format.number}
            />
          }
        />
      </Tile>
      <Tile to={to}>
        <Stat
          label={t("utilization")}
          value={format.percent(now.utilization, 1)}
          detail={now.idle_gpus > 0 ? t("idleHeld", { n: now.idle_gpus }) : t("noneIdle")}
          chart={
            <Spark
              trends={trends}
              metric="utilization"
              color={1}
              label={t("utilization")}
              usualTop={1}
              format={(value) => format.percent(value)}
            />
          }
        />
      </Tile>
      <Tile to={to}>
        <Stat
          label={t("power")}
          value={kilo ? format.number(Math.round(watts / 100) / 10) : watts === null ? "–" : Math.round(watts)}
          unit={kilo ? "kW" : watts === null ? undefined : "W"}
          detail={
            limit !== null &&
            watts !== null &&
            limit > 0 &&
            t("ofLimit", { part: format.percent(watts / limit), limit: format.watts(limit) })
          }
          chart={
            <Spark
              trends={trends}
              metric="power"
              color={2}
              label={t("power")}
              usualTop={limit ?? 0}
              format={format.watts}
            />
          }
        />
      </Tile>
      <Tile to={to}>
        <Stat
          label={t("temperature")}
          value={format.celsius(now.temperature_mean_celsius)}
          detail={now.temperature_celsius !== null && t("hottest", { value: format.celsius(now.temperature_celsius) })}
          chart={
            <Spark
              trends={trends}
              metric="temperature"
              color={3}
              label={t("temperature")}
              usualTop={HOT_CELSIUS}
              format={format.celsius}
            />
          }
        />
      </Tile>
    </>
  );
}

function HostTile({ now }: { now: Overview }) {
  const t = useTexts(texts);
  const format = useFormat();
  const { memory_used_bytes: used, memory_total_bytes: total } = now;
  return (
    <Tile to={useIsOperator() ? "/nodes" : undefined}>
      <Stat
        label={t("hosts")}
        value={format.percent(now.cpu, 1)}
        detail={used !== null && total !== null && total > 0 && t("hostMemory", { used: format.percent(used / total) })}
      />
    </Tile>
  );
}

function QueueTile({ now, trends }: TileProps) {
  const t = useTexts(texts);
  const format = useFormat();
  const wait = now.wait_seconds_median;
  return (
    <Tile to="/queue">
      <Stat
        label={t("waiting")}
        value={format.number(now.queued)}
        unit={t("jobs", { n: now.queued })}
        detail={wait === null ? t("noneWaits") : t("medianWait", { time: format.duration(wait) })}
        chart={<Spark trends={trends} metric="jobs_queued" color={4} label={t("waiting")} format={format.number} />}
      />
    </Tile>
  );
}

function AlertTile({ now }: { now: Overview }) {
  const t = useTexts(texts);
  const counts = (["critical", "warning", "info"] as const).map(
    (severity) => [severity, now.alerts[severity] ?? 0] as const,
  );
  const open = counts.filter(([, count]) => count > 0);
  return (
    <Tile to="/alerts">
      <Stat
        label={t("alerts")}
        value={counts.reduce((sum, [, count]) => sum + count, 0)}
        detail={
          open.length === 0 ? t("noAlerts") : open.map(([severity, count]) => t(severity, { n: count })).join(" · ")
        }
      />
    </Tile>
  );
}

function MyJobsTile() {
  const t = useTexts(texts);
  const me = useMe();
  const { data } = $api.useQuery("get", "/panel", { params: { query: { user: me.name, limit: 1 } } });
  const sum = (of: "running" | "queued") => data?.kinds.reduce((all, kind) => all + kind[of], 0);
  return (
    <Tile to={`/jobs?user=${encodeURIComponent(me.name)}`}>
      <Stat
        label={t("myJobs")}
        value={sum("running") ?? "–"}
        unit={t("running")}
        detail={t("iWait", { n: sum("queued") ?? 0 })}
      />
    </Tile>
  );
}

function Tile({ to, children }: { to: string | undefined; children: ReactNode }) {
  const searchFor = useClusterSearch();
  return to === undefined ? (
    <div className={classes.tile}>{children}</div>
  ) : (
    <Link to={to} search={to.includes("?") ? undefined : searchFor(to)} className={classes.tile}>
      {children}
    </Link>
  );
}
