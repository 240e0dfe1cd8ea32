/** The ways into a workbench: Jupyter in one click, the SSH command to copy. */
import { Anchor, Button, Stack, Text, Tooltip } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { ExternalLink } from "lucide-react";

import { useAll } from "@/api/useAll";
import { useMe } from "@/app/session";
import { isOver, stageOf } from "@/pages/workbenches/progress";
import type { Bench } from "@/pages/workbenches/useWorkbenches";
import { texts } from "@/pages/workbenches/texts";
import { CopyText } from "@/parts/CopyText";
import { useTexts } from "@/texts/texts";

export function Access({ bench }: { bench: Bench }) {
  const t = useTexts(texts);
  if (bench.jupyter === null && bench.ssh === null) {
    return (
      <Text size="sm" c="dimmed">
        {t("ownProgram")}
      </Text>
    );
  }
  return (
    <Stack gap="xs">
      <Jupyter bench={bench} />
      <Ssh bench={bench} />
    </Stack>
  );
}

function Jupyter({ bench }: { bench: Bench }) {
  const t = useTexts(texts);
  const me = useMe();
  const { jupyter } = bench;
  if (jupyter === null) return null;
  const isReady = stageOf(bench) === "ready" || (bench.state === "running" && jupyter.ready);
  const isOwn = bench.user === me.name;
  if (!isReady) {
    return (
      <Tooltip label={t("openLater")}>
        <Button
          variant="default"
          leftSection={<ExternalLink size={14} />}
          data-disabled
          aria-disabled
          onClick={(event) => event.preventDefault()}
        >
          {t("open")}
        </Button>
      </Tooltip>
    );
  }
  return (
    <Tooltip label={t("openOthers")} disabled={isOwn}>
      <Button
        component="a"
        href={jupyter.address}
        target="_blank"
        rel="noopener"
        variant={isOwn ? "filled" : "default"}
        leftSection={<ExternalLink size={14} />}
        aria-label={t("openName", { name: bench.name })}
      >
        {t("open")}
      </Button>
    </Tooltip>
  );
}

function Ssh({ bench }: { bench: Bench }) {
  const t = useTexts(texts);
  const me = useMe();
  const isOwn = bench.user === me.name;
  const keys = useAll("/me/ssh-keys", {}, isOwn && bench.ssh !== null).data;
  if (bench.ssh === null) return null;
  return (
    <div>
      {bench.ssh.command !== null && !isOver(bench) ? (
        <CopyText text={bench.ssh.command} label={t("copySsh", { name: bench.name })} />
      ) : (
        <Text size="xs" c="dimmed">
          {t("sshLater")}
        </Text>
      )}
      {bench.ssh.sessions > 0 && (
        <Text size="xs" c="dimmed">
          {t("sshSessions", { n: bench.ssh.sessions })}
        </Text>
      )}
      {isOwn && keys?.length === 0 && (
        <Text size="xs">
          {t("noKey")}{" "}
          <Anchor
            size="xs"
            underline="always"
            renderRoot={(props) => <Link to="/settings" search={{ tab: "keys" }} {...props} />}
          >
            {t("addKey")}
          </Anchor>
        </Text>
      )}
    </div>
  );
}
