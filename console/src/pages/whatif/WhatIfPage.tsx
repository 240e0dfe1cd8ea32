/** What would have been: questions that are replayed beside the live cluster, and a policy that runs in its shadow. */
import { FlaskConical, Ghost } from "lucide-react";

import { QuestionsTab } from "@/pages/whatif/QuestionsTab";
import { ShadowTab } from "@/pages/whatif/ShadowTab";
import { words } from "@/pages/whatif/words";
import { PageHeader } from "@/parts/PageHeader";
import { PageTabs } from "@/parts/PageTabs";
import { navigation } from "@/words/navigation";
import { useWords } from "@/words/words";

export default function WhatIfPage() {
  const t = useWords(words);
  const n = useWords(navigation);
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
