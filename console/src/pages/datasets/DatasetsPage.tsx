import { Database, FolderGit2 } from "lucide-react";

import { useIsOperator } from "@/app/session";
import { DatasetList } from "@/pages/datasets/DatasetList";
import { Targets } from "@/pages/datasets/targets/Targets";
import { texts } from "@/pages/datasets/texts";
import { PageHeader } from "@/parts/PageHeader";
import { PageTabs } from "@/parts/PageTabs";
import { navigation } from "@/texts/navigation";
import { useTexts } from "@/texts/texts";

export default function DatasetsPage() {
  const t = useTexts(texts);
  const n = useTexts(navigation);
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
