import { PageHeader } from "@/parts/PageHeader";
import { navigation } from "@/words/navigation";
import { useWords } from "@/words/words";

export default function AnalysisPage() {
  const t = useWords(navigation);
  return <PageHeader title={t("analysis")} />;
}
