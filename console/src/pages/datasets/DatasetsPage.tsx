import { Database, FolderGit2 } from "lucide-react";

import { useIsOperator } from "@/app/session";
import { DatasetList } from "@/pages/datasets/DatasetList";
import { Targets } from "@/pages/datasets/Targets";
import { words } from "@/pages/datasets/words";
import { PageHeader } from "@/parts/PageHeader";
import { PageTabs } from "@/parts/PageTabs";
import { navigation } from "@/words/navigation";
import { useWords } from "@/words/words";

export default function DatasetsPage() {
  const t = useWords(words);
  const n = useWords(navigation);
  const isOperator = useIsOperator();
  const datasets = { key: "datasets", title: t("datasets"), icon: Database, content: () => <DatasetList /> };
  const targets = { key: "targets", title: t("targets"), icon: FolderGit2, content: () => <Targets /> };
  return (
    <>
      <PageHeader title={n("datasets")} detail={t("about")} />
      {isOperator ? <PageTabs label={t("sections")} tabs={[datasets, targets]} /> : <DatasetList />}
    </>
  );
}
