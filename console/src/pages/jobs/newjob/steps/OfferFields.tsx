import { Anchor, SimpleGrid, Stack, Switch, Text, TextInput } from "@mantine/core";
import { Link } from "@tanstack/react-router";

import { useField, useForm } from "@/pages/jobs/newjob/form";
import { texts } from "@/pages/jobs/newjob/texts";
import { useTexts } from "@/texts/texts";

/** How one gets into a workbench. SSH without a registered key is explained before anything is created. */
export function OfferFields() {
  const t = useTexts(texts);
  const { draft, set, facts, problem } = useForm();
  const field = useField();
  return (
    <Stack gap="sm" role="group" aria-label={t("offers")}>
      <Switch
        label={t("jupyter")}
        checked={draft.jupyter}
        onChange={(event) => set({ jupyter: event.currentTarget.checked })}
        error={problem("jupyter")}
      />
      <div>
        <Switch
          label={t("ssh")}
          checked={draft.ssh}
          disabled={!facts.hasKeys && !draft.ssh}
          onChange={(event) => set({ ssh: event.currentTarget.checked })}
          error={problem("ssh")}
        />
        {!facts.hasKeys && (
          <Text size="xs" c="dimmed" mt={4}>
            {t("sshNoKey")}{" "}
            <Anchor
              size="xs"
              underline="always"
              renderRoot={(props) => <Link to="/settings" search={{ tab: "keys" }} {...props} />}
            >
              {t("addKey")}
            </Anchor>
          </Text>
        )}
      </div>
      <TextInput
        label={t("idleStop")}
        description={t("idleStopHint")}
        placeholder="2h"
        maw={320}
        {...field("idle_stop")}
      />
    </Stack>
  );
}

/** The web page that a job serves: a program that corral knows, or a port of the job's own program. */
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
