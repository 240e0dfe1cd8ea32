/** The preview of a drain: displaced jobs and their new places, jobs without a place, and when the nodes are empty. */
import {
  Alert,
  Badge,
  Button,
  Group,
  List,
  Modal,
  SegmentedControl,
  SimpleGrid,
  Skeleton,
  Stack,
  Text,
  TextInput,
} from "@mantine/core";
import { TriangleAlert } from "lucide-react";
import { useMemo, useState } from "react";

import { $api, type Schema } from "@/api/client";
import { JobLink } from "@/pages/jobs/why/JobRef";
import { texts } from "@/pages/fleet/nodes/texts";
import { DataTable, Faint, type Column } from "@/parts/DataTable";
import { Moment } from "@/parts/Moment";
import { ProblemNote } from "@/parts/ProblemNote";
import { Stat } from "@/parts/Stat";
import { common } from "@/texts/common";
import { useFormat } from "@/texts/format";
import { localText, momentText } from "@/texts/localTime";
import { useTexts } from "@/texts/texts";

type Found = Schema<"DrainPreviewView">;
/** A job that stays runs to its end, as the drain has no time. */
type Displaced = Omit<Found["jobs"][number], "displaced"> & {
  readonly displaced: Found["jobs"][number]["displaced"] | "stays";
};
type Preview = Omit<Found, "jobs"> & { readonly jobs: readonly Displaced[] };

const HOUR_MS = 3_600_000;
const LOOKS = {
  surely: ["red", "drainSurely"],
  likely: ["orange", "drainLikelyLabel"],
  possibly: ["yellow", "drainPossibly"],
  no: ["teal", "drainNo"],
  stays: ["teal", "drainStays"],
} as const;

/** When jobs that are left must leave: never, now, or at a time as the field of the form has it. */
type Choice = "" | "now" | (string & {});

interface DrainDialogProps {
  readonly nodes: readonly string[];
  /** The nodes that are left out, and why. */
  readonly note?: string;
  /** With the time by which the nodes must be empty; null: jobs run to their end. */
  readonly onDrain: (emptyBy: string | null) => void;
  readonly onClose: () => void;
}

export function DrainDialog({ nodes, note = "", onDrain, onClose }: DrainDialogProps) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const [at, setAt] = useState<Choice>("");
  return (
    <Modal
      opened
      onClose={onClose}
      size="xl"
      title={t(nodes.length === 1 ? "drainOne" : "drainSeveral", { node: nodes[0] ?? "", n: nodes.length })}
      closeButtonProps={{ "aria-label": c("close") }}
    >
      <Stack gap="md">
        <Text size="sm" c="dimmed">
          {[nodes.length === 1 ? "" : nodes.join(", "), t("drainHint"), note].filter((one) => one !== "").join(" · ")}
        </Text>
        <When at={at} onChange={setAt} />
        <DrainFindings nodes={nodes} at={at === "now" ? "" : momentText(at)} stays={at === ""} />
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={onClose}>
            {c("cancel")}
          </Button>
          <Button
            onClick={() => {
              onDrain(at === "" ? null : at === "now" ? new Date().toISOString() : momentText(at));
              onClose();
            }}
          >
            {t(nodes.length === 1 ? "drainDo" : "drainDoSeveral", { n: nodes.length })}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}

/** The jobs that are displaced when these nodes are drained together at a time ("": now). With `stays`, jobs run to their end. */
export function DrainFindings({ nodes, at, stays = false }: { nodes: readonly string[]; at: string; stays?: boolean }) {
  const { data, error, refetch } = $api.useQuery(
    "get",
    "/drain-preview",
    { params: { query: { node: [...nodes], ...(at === "" ? {} : { at }) } } },
    { placeholderData: (before) => before },
  );
  if (error !== null) return <ProblemNote error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <Skeleton h={220} />;
  return <Findings preview={stays ? running(data) : data} />;
}

/** Without a time no job is displaced. */
function running(found: Found): Preview {
  return { ...found, jobs: found.jobs.map((job) => ({ ...job, displaced: "stays" })) };
}

function When({ at, onChange }: { at: Choice; onChange: (at: Choice) => void }) {
  const t = useTexts(texts);
  const hasTime = at !== "" && at !== "now";
  const begin = (value: string) =>
    value === "later" ? localText(new Date(Date.now() + HOUR_MS).toISOString()) : value === "now" ? "now" : "";
  return (
    <Group gap="sm" align="flex-end">
      <Stack gap={4}>
        <Text size="sm" fw={500} id="drain-when">
          {t("drainWhen")}
        </Text>
        <SegmentedControl
          size="xs"
          aria-labelledby="drain-when"
          data={[
            { value: "end", label: t("drainEnd") },
            { value: "now", label: t("drainNow") },
            { value: "later", label: t("drainLater") },
          ]}
          value={hasTime ? "later" : at === "" ? "end" : "now"}
          onChange={(value) => onChange(begin(value))}
        />
      </Stack>
      {hasTime && (
        <TextInput
          type="datetime-local"
          aria-label={t("drainAt")}
          value={at}
          // A field that is emptied keeps its time: "now" has a button of its own.
          onChange={(event) => onChange(event.currentTarget.value || at)}
        />
      )}
      <Text size="xs" c="dimmed" pb={6}>
        {t(at === "" ? "drainEndHint" : "drainAtHint")}
      </Text>
    </Group>
  );
}

function Findings({ preview }: { preview: Preview }) {
  const t = useTexts(texts);
  return (
    <Stack gap="md" role="status" aria-live="polite">
      <Figures preview={preview} />
      {preview.stranded.length > 0 && <Stranded preview={preview} />}
      {preview.jobs.length === 0 ? <Text size="sm">{t("drainNoJobs")}</Text> : <Jobs jobs={preview.jobs} />}
    </Stack>
  );
}

function isDisplaced(job: Displaced): boolean {
  return job.displaced !== "no" && job.displaced !== "stays";
}

function Figures({ preview }: { preview: Preview }) {
  const t = useTexts(texts);
  const format = useFormat();
  const { empty_at: empty, jobs } = preview;
  const count = (how: Displaced["displaced"]) => jobs.filter((job) => job.displaced === how).length;
  const lost = jobs.filter(isDisplaced).reduce((sum, job) => sum + job.lost_gpu_seconds, 0);
  const isEmpty = jobs.length === 0;
  return (
    <SimpleGrid cols={{ base: 1, xs: 2, md: 4 }} spacing="sm">
      <Stat
        label={t("drainEmpty")}
        value={isEmpty ? t("drainEmptyNow") : empty === null ? t("drainEmptyUnknown") : <Moment at={empty.p50} />}
        detail={
          isEmpty
            ? undefined
            : empty === null
              ? t("drainEmptyUnknownHint")
              : t("drainLikely", { p90: format.dayTime(empty.p90) })
        }
      />
      <Stat
        label={t("drainDisplaced")}
        value={jobs.filter(isDisplaced).length}
        unit={`/ ${jobs.length}`}
        detail={(["surely", "likely", "possibly"] as const)
          .filter((how) => count(how) > 0)
          .map((how) => `${count(how)} ${t(LOOKS[how][1])}`)
          .join(", ")}
      />
      <Stat label={t("drainLost")} value={format.number(lost / 3_600)} unit="h" detail={t("drainLostHint")} />
      {Object.entries(preview.capacity_after).map(([pool, left]) => (
        <Stat
          key={pool}
          label={t("drainCapacity", { pool })}
          value={format.number(left.gpus)}
          unit="GPU"
          detail={t("drainCapacityText", { free: format.number(left.free), gpus: format.number(left.gpus) })}
        />
      ))}
    </SimpleGrid>
  );
}

function Stranded({ preview }: { preview: Preview }) {
  const t = useTexts(texts);
  return (
    <Alert color="orange" icon={<TriangleAlert size={18} />} title={t("drainStranded", { n: preview.stranded.length })}>
      <List size="sm">
        {preview.stranded.map((job) => (
          <List.Item key={job.id}>
            <JobLink id={job.id}>{job.name}</JobLink> ({job.user}): {job.detail}
          </List.Item>
        ))}
      </List>
    </Alert>
  );
}

function Jobs({ jobs }: { jobs: readonly Displaced[] }) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const format = useFormat();
  const columns = useMemo<readonly Column<Displaced>[]>(
    () => [
      {
        key: "job",
        title: t("jobs"),
        render: (job) => (
          <>
            <JobLink id={job.id}>{job.name}</JobLink>
            <Faint>{job.user}</Faint>
          </>
        ),
      },
      {
        key: "gpus",
        title: c("gpus"),
        numeric: true,
        sort: (job) => job.gpu_count,
        render: (job) => format.number(job.gpu_count),
      },
      { key: "ends", title: t("drainEnds"), wide: true, render: (job) => <Ends job={job} /> },
      { key: "effect", title: t("drainEffect"), render: (job) => <Effect job={job} /> },
      {
        key: "lost",
        title: t("drainLost"),
        numeric: true,
        wide: true,
        sort: (job) => job.lost_gpu_seconds,
        render: (job) => (!isDisplaced(job) ? "–" : `${format.number(job.lost_gpu_seconds / 3_600)} h`),
      },
      { key: "goes", title: t("drainGoes"), render: (job) => <Goes job={job} /> },
    ],
    [t, c, format],
  );
  return <DataTable label={t("drainJobs")} rows={jobs} columns={columns} rowKey={(job) => job.id} />;
}

function Ends({ job }: { job: Displaced }) {
  const t = useTexts(texts);
  const format = useFormat();
  if (job.ends_at === null && job.limit_at === null) return <>{t("drainEndsUnknown")}</>;
  return (
    <>
      {job.ends_at !== null && (
        <span className="num">
          {format.dayTime(job.ends_at.p50)} – {format.dayTime(job.ends_at.p90)}
        </span>
      )}
      {job.limit_at !== null && <Faint>{t("drainEndsLimit", { at: format.dayTime(job.limit_at) })}</Faint>}
    </>
  );
}

function Effect({ job }: { job: Displaced }) {
  const t = useTexts(texts);
  const [color, text] = LOOKS[job.displaced];
  return (
    <Badge variant="light" color={color} tt="none" fw={500}>
      {t(text)}
    </Badge>
  );
}

function Goes({ job }: { job: Displaced }) {
  const t = useTexts(texts);
  const format = useFormat();
  if (!isDisplaced(job)) return <>–</>;
  return (
    <>
      {job.goes_to === null ? t("drainGoesNowhere") : job.goes_to.join(", ")}
      {job.back_at !== null && <Faint>{t("drainBack", { when: format.ago(job.back_at) })}</Faint>}
    </>
  );
}
