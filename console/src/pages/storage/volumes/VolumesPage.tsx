import { Database, HardDrive } from "lucide-react";

import { useIsOperator } from "@/app/session";
import { ObjectStores } from "@/pages/storage/volumes/stores/ObjectStores";
import { VolumeList } from "@/pages/storage/volumes/VolumeList";
import { texts } from "@/pages/storage/volumes/texts";
import { PageHeader } from "@/parts/PageHeader";
import { PageTabs } from "@/parts/PageTabs";
import { navigation } from "@/texts/navigation";
import { useTexts } from "@/texts/texts";

export default function VolumesPage() {
  const t = useTexts(texts);
  const n = useTexts(navigation);
  const isOperator = useIsOperator();
  const volumes = { key: "volumes", title: t("volumes"), icon: HardDrive, content: () => <VolumeList /> };
  const stores = { key: "object-stores", title: t("objectStores"), icon: Database, content: () => <ObjectStores /> };
  return (
    <>
      <PageHeader title={n("volumes")} detail={t("about")} />
      {isOperator ? <PageTabs label={t("sections")} tabs={[volumes, stores]} /> : <VolumeList />}
    </>
  );
}
