/** Said first on the page of a job that loses its place to another one, or lost it and waits to come back. */
import { Alert } from "@mantine/core";
import { Undo2 } from "lucide-react";

import { isActive, type Job } from "@/pages/jobs/actions/possible";
import { Return, useReceipts } from "@/pages/jobs/job/ReceiptsPanel";
import { receipts as texts } from "@/pages/jobs/job/texts";
import { JobLink } from "@/pages/jobs/why/JobRef";
import { useTexts } from "@/texts/texts";

export function PreemptedNote({ job }: { job: Job }) {
  const t = useTexts(texts);
  const last = useReceipts(job.id)?.find((receipt) => receipt.role === "preempted");
  const waits = job.state === "queued" && job.preemptions > 0;
  if (!waits && (job.preempted_for === null || !isActive(job))) return null;
  const beneficiary = job.preempted_for ?? last?.for_job;
  return (
    <Alert color="orange" icon={<Undo2 size={18} />} title={t(waits ? "waitsTitle" : "stopsTitle")}>
      {t(waits ? "waitsText" : "stopsText")}{" "}
      {beneficiary !== undefined && beneficiary !== null && (
        <>
          {t("to")}{" "}
          <JobLink id={beneficiary}>{last?.for_job === beneficiary ? last.for_job_name : beneficiary}</JobLink>
          {t("stop")}{" "}
        </>
      )}
      {waits && job.preemptions > 1 && t("times", { n: job.preemptions })}
      {last !== undefined && waits && <Return receipt={last} />}
    </Alert>
  );
}
