/** The installation at a glance: what is used, what is hot, who waits and why, and what is wrong. */
import { Button, Skeleton } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { Plus } from "lucide-react";
import { lazy, Suspense, useMemo } from "react";

import { $api } from "@/api/client";
import { useGpuMap } from "@/api/useGpuMap";
import { useCluster, useClusters } from "@/app/cluster";
import { useIsOperator } from "@/app/session";
import { RangePicker } from "@/charts/RangePicker";
import { useRange } from "@/charts/ranges";
import { useMetrics } from "@/charts/useMetrics";
import { Alerts } from "@/pages/fleet/overview/Alerts";
import { ofCluster } from "@/pages/fleet/overview/map/gpus";
import { MapPanel } from "@/pages/fleet/overview/map/MapPanel";
import classes from "@/pages/fleet/overview/Overview.module.css";
import { Quota } from "@/pages/fleet/overview/Quota";
import { Tiles } from "@/pages/fleet/overview/Tiles";
import { Users } from "@/pages/fleet/overview/Users";
import { texts } from "@/pages/fleet/overview/texts";
import { PageHeader } from "@/parts/PageHeader";
import { ProblemNote } from "@/parts/ProblemNote";
import { navigation } from "@/texts/navigation";
import { useTexts } from "@/texts/texts";

// Only of several clusters, or of one in trouble.
const ClusterHealth = lazy(() => import("@/parts/ClusterHealth"));
// Only for those who begin.
const FirstSteps = lazy(() => import("@/pages/fleet/overview/FirstSteps"));
// Below the first screen.
const ResourcePanel = lazy(() => import("@/parts/ResourcePanel"));
// The sentences of reasons are below the first screen.
const Waiting = lazy(() => import("@/pages/fleet/overview/Waiting"));
const Trends = lazy(() => import("@/pages/fleet/overview/Trends"));

export default function OverviewPage() {
  const page = useTexts(navigation);
  const t = useTexts(texts);
  const isOperator = useIsOperator();
  const [range] = useRange();
  const cluster = useCluster();
  const clusters = useClusters() ?? [];
  // The same question as that of the bell and the navigation, so that it is asked once.
  const overview = $api.useQuery("get", "/overview", cluster === "" ? undefined : { params: { query: { cluster } } });
  const map = useGpuMap();
  const here = useMemo(() => (map.data === undefined ? undefined : ofCluster(map.data, cluster)), [map.data, cluster]);
  const trends = useMetrics({ of: "everything" }, range);
  const now = overview.data;
  const unready = now === undefined ? 0 : now.nodes - (now.nodes_by_state.ready ?? 0);
  return (
    <>
      <PageHeader
        title={page("overview")}
        detail={
          now !== undefined &&
          [
            t("summary", { nodes: now.nodes, gpus: now.gpus }),
            ...(unready > 0 ? [t("notReady", { n: unready })] : []),
          ].join(" · ")
        }
      >
        <RangePicker />
        <Button leftSection={<Plus size={15} aria-hidden />} renderRoot={(props) => <Link to="/jobs/new" {...props} />}>
          {t("newJob")}
        </Button>
      </PageHeader>
      {overview.error !== null && <ProblemNote error={overview.error} onRetry={() => void overview.refetch()} />}
      {(clusters.length > 1 || clusters.some((one) => !one.healthy)) && (
        <Suspense fallback={null}>
          <ClusterHealth />
        </Suspense>
      )}
      <Suspense fallback={null}>
        <FirstSteps />
      </Suspense>
      <Tiles now={now} trends={cluster === "" ? trends.data : undefined} />
      <div className={classes.columns}>
        <div className={classes.column}>
          {map.error === null ? (
            <MapPanel data={here} />
          ) : (
            <ProblemNote error={map.error} onRetry={() => void map.refetch()} />
          )}
          <Suspense fallback={<Skeleton h={560} />}>
            <Trends data={trends.data} error={trends.error} onRetry={trends.refetch} />
          </Suspense>
        </div>
        <div className={classes.column}>
          {isOperator && <Alerts />}
          <Suspense fallback={<Skeleton h={220} />}>
            <Waiting />
          </Suspense>
          {!isOperator && <Quota />}
          <Users data={here} />
          <Suspense fallback={<Skeleton h={220} />}>
            <ResourcePanel />
          </Suspense>
        </div>
      </div>
    </>
  );
}
