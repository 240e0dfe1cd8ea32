/** The mounted storage of a job and its paths, each with a link to its page. */
import { Anchor, Code, Stack, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";

import type { Schema } from "@/api/client";
import { texts } from "@/pages/jobs/job/texts";
import { useTexts } from "@/texts/texts";

type Mount = Schema<"MountView">;

export function MountLines({ mounts }: { mounts: readonly Mount[] }) {
  const t = useTexts(texts);
  return (
    <Stack gap={4}>
      {mounts.map((mount) => (
        <div key={mount.path}>
          <Code>{mount.path}</Code>{" "}
          <Text span size="xs" c="dimmed">
            {t(mount.mode === "rw" ? "mountWrites" : "mountReads")}
          </Text>
          <div>
            <Source mount={mount} />
          </div>
        </div>
      ))}
    </Stack>
  );
}

function Source({ mount }: { mount: Mount }) {
  const t = useTexts(texts);
  if (mount.kind === "local")
    return (
      <Text size="xs" c="dimmed">
        {t("mountLocal", { size: mount.source })}
      </Text>
    );
  const page =
    mount.kind === "dataset"
      ? { to: `/datasets/${mount.dataset ?? ""}`, search: { tab: "files", version: mount.version ?? "" } }
      : { to: `/volumes/${mount.volume_id ?? ""}`, search: {} };
  return (
    <Anchor size="sm" renderRoot={(props) => <Link {...page} {...props} />}>
      {mount.kind === "dataset" ? t("mountDataset", { name: mount.source }) : mount.source}
    </Anchor>
  );
}
