/** The summary of a job: its state, its properties, and the outcome of each attempt. */
import { Grid, Stack } from "@mantine/core";

import { isEnded, type Job } from "@/pages/jobs/actions/possible";
import { EndedPanel } from "@/pages/jobs/job/EndedPanel";
import { Facts } from "@/pages/jobs/job/Facts";
import { PreemptedNote } from "@/pages/jobs/job/PreemptedNote";
import { ReceiptsPanel } from "@/pages/jobs/job/ReceiptsPanel";
import { RunningPanel } from "@/pages/jobs/job/RunningPanel";
import { Timeline } from "@/pages/jobs/job/Timeline";
import { UsagePanel } from "@/pages/jobs/job/UsagePanel";
import { LookBack } from "@/pages/jobs/why/LookBack";
import { WaitingPanel } from "@/pages/jobs/why/WaitingPanel";

export function SummaryTab({ job }: { job: Job }) {
  const waits = job.state === "queued" || job.state === "created";
  return (
    <Grid gap="sm">
      <Grid.Col span={{ base: 12, lg: 8 }}>
        <Stack gap="sm">
          <PreemptedNote job={job} />
          {waits ? <WaitingPanel job={job} /> : isEnded(job) ? <EndedPanel job={job} /> : <RunningPanel job={job} />}
          {isEnded(job) && <UsagePanel job={job} />}
          <ReceiptsPanel job={job} />
          <Timeline job={job} />
          <LookBack job={job} />
        </Stack>
      </Grid.Col>
      <Grid.Col span={{ base: 12, lg: 4 }}>
        <Facts job={job} />
      </Grid.Col>
    </Grid>
  );
}
