import { PageHeader } from "@/parts/PageHeader";
import { navigation } from "@/words/navigation";
import { useWords } from "@/words/words";

export default function JobPage() {
  const t = useWords(navigation);
  return <PageHeader title={t("job")} />;
}
