/** What-if questions, which are replayed beside the live cluster, and a shadow policy. */
import { FlaskConical, Ghost } from "lucide-react";

import { QuestionsTab } from "@/pages/whatif/QuestionsTab";
import { ShadowTab } from "@/pages/whatif/ShadowTab";
import { texts } from "@/pages/whatif/texts";
import { PageHeader } from "@/parts/PageHeader";
import { PageTabs } from "@/parts/PageTabs";
import { navigation } from "@/texts/navigation";
import { useTexts } from "@/texts/texts";

export default function WhatIfPage() {
  const t = useTexts(texts);
  const n = useTexts(navigation);
  return (
    <>
      <PageHeader title={n("whatIf")} detail={t("detail")} />
      <PageTabs
        label={t("sections")}
        tabs={[
          { key: "questions", title: t("questions"), icon: FlaskConical, content: () => <QuestionsTab /> },
          { key: "shadow", title: t("shadow"), icon: Ghost, content: () => <ShadowTab /> },
        ]}
      />
    </>
  );
}
