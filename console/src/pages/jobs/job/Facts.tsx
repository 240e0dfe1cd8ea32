import { Anchor } from "@mantine/core";
import { Link } from "@tanstack/react-router";

import type { Job } from "@/pages/jobs/actions/possible";
import { useSize } from "@/pages/jobs/job/useSize";
import { texts } from "@/pages/jobs/job/texts";
import { MountLines } from "@/pages/jobs/job/MountLines";
import { LABELS, plainFieldsOf, typedValue } from "@/pages/jobs/spec/fields";
import { ownLabels } from "@/pages/jobs/spec/submission";
import { JobLinks } from "@/pages/jobs/why/JobRef";
import { FactList, type Fact } from "@/parts/FactList";
import { Moment } from "@/parts/Moment";
import { Panel } from "@/parts/Panel";
import { kinds } from "@/texts/common";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

/** The job's properties as submitted; those that do not apply are left out. */
export function Facts({ job }: { job: Job }) {
  const t = useTexts(texts);
  const tk = useTexts(kinds);
  const label = useTexts(LABELS);
  const format = useFormat();
  const size = useSize();
  const { elastic, array, mounts = [] } = job;
  const parts = [
    job.cpus > 0 && t("cpus", { n: format.number(job.cpus) }),
    job.memory_bytes > 0 && format.bytes(job.memory_bytes),
  ].filter((part) => part !== false);
  const perNode = parts.length > 0 && t("perNode", { parts: parts.join(", ") });
  const facts: Fact[] = [
    [t("id"), job.id],
    [t("owner"), job.user],
    [t("kind"), tk(job.kind)],
    ...plainFieldsOf(job.kind === "workbench")
      .filter((row) => row.isOnPage === true && typedValue(row, job) !== "")
      .map((row): Fact => [label(row.name), <Lines key={row.name} text={typedValue(row, job)} />]),
    [t("queue"), job.queue],
    [t("priority"), job.priority],
    [t("size"), size(job)],
    ["", elastic && t(job.nodes > 1 ? "elasticEach" : "elastic", { min: elastic.min_gpus, max: elastic.max_gpus })],
    [t("cpuMemory"), perNode],
    [t("package"), job.package],
    [t("flavor"), job.flavor],
    [t("preset"), job.preset],
    [t("image"), job.image],
    [t("venv"), job.venv],
    [
      t("labels"),
      Object.entries(ownLabels(job.labels))
        .map(([name, value]) => `${name}=${value}`)
        .join(", "),
    ],
    [
      t("array"),
      array && (
        <ArrayLink name={array.name} text={t("arrayOf", { name: array.name, index: array.index, size: array.size })} />
      ),
    ],
    [t("mounts"), mounts.length > 0 && <MountLines key="mounts" mounts={mounts} />],
    [t("after"), job.after.length > 0 && <JobLinks jobs={job.after} />],
    [t("timeLimit"), job.time_limit_seconds === null ? t("noLimit") : format.duration(job.time_limit_seconds)],
    [t("retries"), t("retriesOf", { n: job.retries, max: job.max_retries })],
    [t("preemptible"), t(job.preemptible ? "preemptibleYes" : "preemptibleNo")],
    [t("preempted"), job.preemptions > 0 && t("preemptedTimes", { n: job.preemptions })],
    [t("created"), <Moment key="created" at={job.created_at} />],
    [t("queued"), job.queued_at && <Moment at={job.queued_at} />],
    [t("started"), job.started_at && <Moment at={job.started_at} />],
    [t("ended"), job.ended_at && <Moment at={job.ended_at} />],
    [t("savedAt"), job.checkpointed_at && <Moment at={job.checkpointed_at} />],
  ];
  return (
    <Panel title={t("facts")}>
      <FactList facts={facts} />
    </Panel>
  );
}

/** A text with its line breaks. */
function Lines({ text }: { text: string }) {
  return <span style={{ whiteSpace: "pre-line" }}>{text}</span>;
}

function ArrayLink({ name, text }: { name: string; text: string }) {
  return (
    <Anchor size="sm" renderRoot={(props) => <Link to="/jobs" search={{ array: name }} {...props} />}>
      {text}
    </Anchor>
  );
}
