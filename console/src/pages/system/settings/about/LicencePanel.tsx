import { Button, Group, Stack, Text, Textarea } from "@mantine/core";
import { useForm } from "@mantine/form";

import { api, sent, type Schema } from "@/api/client";
import { LicencePut } from "@/api/limits";
import { useAction } from "@/api/useAction";
import { texts } from "@/pages/system/settings/about/texts";
import { useConfirm } from "@/parts/confirm";
import { Moment } from "@/parts/Moment";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { StateBadge } from "@/parts/StateBadge";
import { useFormAction } from "@/parts/useFormAction";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

export function LicencePanel({ licence }: { licence: Schema<"LicenceView"> }) {
  const t = useTexts(texts);
  const confirm = useConfirm();
  const remove = useAction({
    run: () => sent(api.DELETE("/about/licence")),
    touches: ["/about"],
    done: () => t("removed"),
  });
  const tools = licence.state !== "none" && (
    <Button
      variant="subtle"
      color="red"
      onClick={() =>
        confirm({
          title: t("removeTitle"),
          text: t("removeText"),
          action: t("remove"),
          onConfirm: () => remove.mutate(undefined),
        })
      }
    >
      {t("remove")}
    </Button>
  );
  return (
    <Panel title={t("licence")} tools={tools}>
      <Stack gap="sm">
        <Group gap="xs">
          <StateBadge state={licence.state} />
          {licence.holder !== null && <Text size="sm">{licence.holder}</Text>}
          {licence.expires_at !== null && (
            <Text size="sm" c="dimmed" component="div">
              {t("expires")} <Moment at={licence.expires_at} />
            </Text>
          )}
        </Group>
        <Text size="sm" c="dimmed">
          {licence.detail}
        </Text>
        <LicenceForm />
      </Stack>
    </Panel>
  );
}

function LicenceForm() {
  const t = useTexts(texts);
  const c = useTexts(common);
  const form = useForm({
    initialValues: { token: "" },
    validate: { token: (token) => (token.trim() === "" ? c("required") : null) },
  });
  const set = useFormAction(form, {
    run: ({ token }: { token: string }) => sent(api.PUT("/about/licence", { body: { token: token.trim() } })),
    touches: ["/about"],
    done: () => t("setDone"),
    onDone: () => form.reset(),
  });
  return (
    <form onSubmit={set.onSubmit} noValidate>
      <Stack gap="xs">
        {set.problem !== null && <ProblemNote error={set.problem} />}
        <Textarea
          label={t("enter")}
          description={t("enterHint")}
          autosize
          minRows={2}
          spellCheck={false}
          maxLength={LicencePut.token.most}
          {...form.getInputProps("token")}
        />
        <Group justify="flex-end">
          <Button type="submit" loading={set.busy}>
            {t("set")}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
