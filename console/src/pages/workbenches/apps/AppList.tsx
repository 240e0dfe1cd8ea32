/** Apps of the user's jobs, and those that are shared with the user's group; for operators those of all users. */
import { Badge } from "@mantine/core";
import { useMemo } from "react";

import type { Schema } from "@/api/client";
import { useAll } from "@/api/useAll";
import { OpenApp } from "@/pages/workbenches/apps/OpenApp";
import { texts } from "@/pages/workbenches/apps/texts";
import { DataTable, Faint, type Column } from "@/parts/DataTable";
import { Panel } from "@/parts/Panel";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

type App = Schema<"AppView">;

/** Draws a list only if there are apps: they begin with a job, not here. */
export function AppList() {
  const t = useTexts(texts);
  const columns = useColumns();
  const { data } = useAll("/apps");
  if (data === undefined || data.length === 0) return null;
  return (
    <Panel title={t("apps")} mt="md">
      <DataTable
        label={t("apps")}
        rows={data}
        columns={columns}
        rowKey={(app) => app.job_id}
        href={(app) => `/jobs/${encodeURIComponent(app.job_id)}`}
        actions={(app) => <OpenApp app={app} />}
        empty={null}
      />
    </Panel>
  );
}

function useColumns(): readonly Column<App>[] {
  const t = useTexts(texts);
  const c = useTexts(common);
  return useMemo(
    () => [
      {
        key: "job",
        title: t("ofJob"),
        sort: (app) => app.name,
        render: (app) => (
          <>
            {app.name}
            <Faint>{app.job_id}</Faint>
          </>
        ),
      },
      { key: "title", title: t("app"), sort: (app) => app.title, render: (app) => app.title },
      { key: "user", title: c("user"), sort: (app) => app.user, render: (app) => app.user },
      {
        key: "ready",
        title: c("state"),
        render: (app) => (
          <Badge variant="light" tt="none" color={app.ready ? "teal" : "gray"}>
            {t(app.ready ? "ready" : "notReady")}
          </Badge>
        ),
      },
    ],
    [t, c],
  );
}
