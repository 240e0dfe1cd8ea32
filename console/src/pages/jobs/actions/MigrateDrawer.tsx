/** Moves a running job to another node, after a preview. */
import { Select } from "@mantine/core";
import { useState } from "react";

import { useAll } from "@/api/useAll";
import { ChangeDrawer } from "@/pages/jobs/actions/ChangeDrawer";
import type { Job } from "@/pages/jobs/actions/possible";
import { actions, texts } from "@/pages/jobs/actions/texts";
import { useTexts } from "@/texts/texts";

export function MigrateDrawer({ job, onClose }: { job: Job; onClose: () => void }) {
  const t = useTexts(texts);
  const ta = useTexts(actions);
  const { data: nodes } = useAll("/nodes");
  const [to, setTo] = useState<string | null>(null);
  const here = job.allocation?.grants.map((grant) => grant.node) ?? [];
  const others = (nodes ?? []).filter((node) => !here.includes(node.id) && node.state === "ready");
  return (
    <ChangeDrawer
      job={job}
      title={t("migrateTitle", { name: job.name })}
      action={ta("migrate")}
      change={{ to }}
      onClose={onClose}
    >
      <Select
        label={t("node")}
        description={t("migrateHint", { node: here.join(", ") })}
        placeholder={t("bestNode")}
        data={others.map((node) => ({ value: node.id, label: node.id }))}
        value={to}
        onChange={setTo}
        clearable
        searchable
      />
    </ChangeDrawer>
  );
}
