import { CalendarClock, FileText } from "lucide-react";

import { MadeTab } from "@/pages/reports/MadeTab";
import { SchedulesTab } from "@/pages/reports/SchedulesTab";
import { texts } from "@/pages/reports/texts";
import { PageHeader } from "@/parts/PageHeader";
import { PageTabs } from "@/parts/PageTabs";
import { navigation } from "@/texts/navigation";
import { useTexts } from "@/texts/texts";

export default function ReportsPage() {
  const page = useTexts(navigation);
  const t = useTexts(texts);
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
