import { useRouterState } from "@tanstack/react-router";
import { lazy, Suspense, type ComponentProps } from "react";

import { isNarrowed, useClusters } from "@/app/cluster";

const ClusterSelect = lazy(() => import("@/app/shell/ClusterSelect"));

/** Only where there is a choice, and only on pages that it changes. */
export function ClusterSwitch(props: ComponentProps<typeof ClusterSelect>) {
  const clusters = useClusters() ?? [];
  const path = useRouterState({ select: (state) => state.location.pathname });
  if (clusters.length < 2 || !isNarrowed(path)) return null;
  return (
    <Suspense fallback={null}>
      <ClusterSelect {...props} />
    </Suspense>
  );
}
