/** The web page that a job serves: a program that corral knows, or a port of the job's own program. */
import { SimpleGrid, TextInput } from "@mantine/core";

import { useForm } from "@/pages/jobs/newjob/form";
import { texts } from "@/pages/jobs/newjob/texts";
import { useTexts } from "@/texts/texts";

export function AppFields() {
  const t = useTexts(texts);
  const { draft, set } = useForm();
  return (
    <SimpleGrid cols={{ base: 1, sm: 3 }} spacing="md">
      <TextInput
        label={t("app")}
        description={t("appHint")}
        placeholder="tensorboard"
        value={draft.app}
        onChange={(event) => set({ app: event.currentTarget.value })}
      />
      <TextInput
        label={t("appPort")}
        description={t("appPortHint")}
        placeholder="8080"
        value={draft.port}
        onChange={(event) => set({ port: event.currentTarget.value })}
      />
      <TextInput
        label={t("appName")}
        description={t("appNameHint")}
        value={draft.app_name}
        onChange={(event) => set({ app_name: event.currentTarget.value })}
      />
    </SimpleGrid>
  );
}
