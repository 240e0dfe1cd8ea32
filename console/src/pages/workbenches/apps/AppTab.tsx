/** The web program of a job: how to open it, and with whom it is shared. */
import { Alert, Badge, Button, Group, Stack, Text } from "@mantine/core";
import { Link2, Share2, Trash2, Users } from "lucide-react";
import { useMemo, useState } from "react";

import { $api, api, sent, type Schema } from "@/api/client";
import { useAction } from "@/api/useAction";
import { useMe } from "@/app/session";
import { isActive, type Job } from "@/pages/jobs/actions/possible";
import { OpenApp } from "@/pages/workbenches/apps/OpenApp";
import { ShareForm } from "@/pages/workbenches/apps/ShareForm";
import { texts } from "@/pages/workbenches/apps/texts";
import { CopyText } from "@/parts/CopyText";
import { DataTable, type Column } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { IconActions } from "@/parts/IconActions";
import { Moment } from "@/parts/Moment";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { useTexts, type Say } from "@/texts/texts";

type Share = Schema<"AppShareView">;

/** The interval of requests until the program accepts connections, which is no event. */
const LOOK_AGAIN_MS = 3_000;

export function AppTab({ job }: { job: Job }) {
  const t = useTexts(texts);
  const me = useMe();
  const path = { job: job.id };
  const app = $api.useQuery(
    "get",
    "/apps/{job}",
    { params: { path } },
    { refetchInterval: ({ state }) => (isActive(job) && state.data?.ready === false ? LOOK_AGAIN_MS : false) },
  );
  if (app.error !== null) return <ProblemNote error={app.error} onRetry={() => void app.refetch()} />;
  return (
    <Stack gap="sm">
      <Panel title={app.data?.title ?? t("app")} tools={app.data !== undefined && <OpenApp app={app.data} />}>
        <Group gap="xs" mb="xs">
          <Badge variant="light" tt="none" color={app.data?.ready === true ? "teal" : "gray"} role="status">
            {t(app.data?.ready === true ? "ready" : "notReady")}
          </Badge>
          {app.data?.ready === false && <Text size="sm">{t("notReadyHint")}</Text>}
        </Group>
        <Text size="sm" c="dimmed" mb={4}>
          {t("address")}
        </Text>
        {app.data !== undefined && <CopyText text={app.data.address} />}
      </Panel>
      {job.user === me.name && <Shares job={job} shares={app.data?.shares} />}
    </Stack>
  );
}

function Shares({ job, shares }: { job: Job; shares: readonly Share[] | undefined }) {
  const t = useTexts(texts);
  const [isSharing, setSharing] = useState(false);
  // In memory only: a link is a secret.
  const [link, setLink] = useState<string>();
  const columns = useMemo(() => columnsOf(t), [t]);
  const share = (
    <Button leftSection={<Share2 size={15} />} onClick={() => setSharing(true)}>
      {t("share")}
    </Button>
  );
  return (
    <Panel title={t("shares")} tools={shares?.length === 0 ? undefined : share}>
      <Text size="sm" c="dimmed" mb="sm">
        {t("sharesHint")}
      </Text>
      {link !== undefined && (
        <Alert color="teal" icon={<Link2 size={18} />} title={t("linkMade")} mb="md" role="status">
          <Stack gap="xs" align="flex-start">
            <CopyText text={link} label={t("copyLink")} />
            <Text size="sm">{t("linkHint")}</Text>
            <Button variant="default" onClick={() => setLink(undefined)}>
              {t("kept")}
            </Button>
          </Stack>
        </Alert>
      )}
      <DataTable
        label={t("shares")}
        rows={shares}
        columns={columns}
        rowKey={(one) => `${one.kind}/${one.name}`}
        actions={(one) => <EndShare job={job} share={one} />}
        empty={
          <EmptyState icon={Users} title={t("noShares")} hint={t("noSharesHint")}>
            {share}
          </EmptyState>
        }
      />
      {isSharing && <ShareForm job={job} onClose={() => setSharing(false)} onLink={setLink} />}
    </Panel>
  );
}

function nameOf(t: Say<typeof texts>, share: Share): string {
  return t(share.kind === "group" ? "ofGroup" : "byLink", { name: share.name });
}

function columnsOf(t: Say<typeof texts>): Column<Share>[] {
  return [
    { key: "with", title: t("with"), sort: (share) => share.name, render: (share) => nameOf(t, share) },
    {
      key: "until",
      title: t("until"),
      sort: (share) => share.expires_at ?? "",
      render: (share) => (share.expires_at === null ? t("always") : <Moment at={share.expires_at} />),
    },
  ];
}

function EndShare({ job, share }: { job: Job; share: Share }) {
  const t = useTexts(texts);
  const kind = share.kind === "group" ? "group" : "link";
  const end = useAction({
    run: () =>
      sent(
        api.DELETE("/apps/{job}/shares/{kind}/{share}", { params: { path: { job: job.id, kind, share: share.name } } }),
      ),
    touches: ["/apps"],
    done: () => t("unshared"),
  });
  const label = t("unshare", { name: nameOf(t, share) });
  return <IconActions actions={[{ icon: Trash2, label, danger: true, onClick: () => end.mutate(undefined) }]} />;
}
