import { CalendarClock, FileText } from "lucide-react";

import { MadeTab } from "@/pages/reports/MadeTab";
import { SchedulesTab } from "@/pages/reports/SchedulesTab";
import { words } from "@/pages/reports/words";
import { PageHeader } from "@/parts/PageHeader";
import { PageTabs } from "@/parts/PageTabs";
import { navigation } from "@/words/navigation";
import { useWords } from "@/words/words";

export default function ReportsPage() {
  const page = useWords(navigation);
  const t = useWords(words);
  return (
    <>
      <PageHeader title={page("reports")} />
      <PageTabs
        label={page("reports")}
        tabs={[
          { key: "made", title: t("made"), icon: FileText, content: () => <MadeTab /> },
          { key: "schedules", title: t("schedules"), icon: CalendarClock, content: () => <SchedulesTab /> },
        ]}
      />
    </>
  );
}
