/** Numbers that the job's program reports per step. */
import { Skeleton } from "@mantine/core";
import { useMemo } from "react";

import type { Job } from "@/pages/jobs/actions/possible";
import { CurveCharts } from "@/pages/jobs/curves/CurveCharts";
import { useCurves } from "@/pages/jobs/curves/useCurves";
import { ProblemNote } from "@/parts/ProblemNote";

export function CurvesTab({ job }: { job: Job }) {
  const one = useMemo(() => [job], [job]);
  const { jobs, isComplete, error, retry } = useCurves(one);
  if (error !== null) return <ProblemNote error={error} onRetry={retry} />;
  if (jobs === undefined) return <Skeleton h={240} />;
  return <CurveCharts jobs={jobs} isComplete={isComplete} />;
}
