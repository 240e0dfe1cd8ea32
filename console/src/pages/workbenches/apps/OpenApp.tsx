import { Button } from "@mantine/core";
import { ExternalLink } from "lucide-react";

import type { Schema } from "@/api/client";
import { texts } from "@/pages/workbenches/apps/texts";
import { ExplainedButton } from "@/parts/ExplainedButton";
import { useTexts } from "@/texts/texts";

/** Opens the page of an app in a tab of its own. */
export function OpenApp({ app }: { app: Schema<"AppView"> }) {
  const t = useTexts(texts);
  const label = t("open", { title: app.title });
  const icon = <ExternalLink size={14} aria-hidden />;
  if (!app.ready)
    return (
      <ExplainedButton variant="default" leftSection={icon} why={t("notReadyHint")} onClick={() => undefined}>
        {label}
      </ExplainedButton>
    );
  return (
    <Button component="a" href={app.address} target="_blank" rel="noopener" leftSection={icon}>
      {label}
    </Button>
  );
}
