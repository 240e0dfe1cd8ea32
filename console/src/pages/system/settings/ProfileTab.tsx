/** The user's profile, password, and appearance of the console. */
import {
  Button,
  Checkbox,
  Group,
  PasswordInput,
  SegmentedControl,
  Select,
  SimpleGrid,
  Stack,
  Text,
  TextInput,
  useMantineColorScheme,
} from "@mantine/core";
import { useForm } from "@mantine/form";

import { $api, api, sent, type Schema } from "@/api/client";
import { PasswordChange, ProfileEdit } from "@/api/limits";
import { useAction } from "@/api/useAction";
import { LANGUAGES, usePreferences, type Language } from "@/app/preferences";
import { useMe, type Me } from "@/app/session";
import { texts } from "@/pages/system/settings/texts";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { useFormAction } from "@/parts/useFormAction";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

const LEAST_CHARACTERS = PasswordChange.new.least;

export function ProfileTab() {
  const me = useMe();
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }}>
      <You me={me} />
      <Stack>
        <Look />
        <Password me={me} />
      </Stack>
    </SimpleGrid>
  );
}

function You({ me }: { me: Me }) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const form = useForm({
    initialValues: { display_name: me.display_name, email: me.email },
    validateInputOnChange: true,
    validate: { email: (email) => (email === "" || /^\S+@\S+$/.test(email) ? null : t("badEmail")) },
  });
  const save = useFormAction(form, {
    run: (body: { display_name: string; email: string }) => sent(api.PATCH("/me", { body })),
    touches: ["/me", "/users"],
    done: () => t("saved"),
    onDone: () => form.resetDirty(),
  });
  const facts = [
    [t("userName"), me.name],
    [t("role"), t(me.role)],
    [t("group"), me.group ?? "–"],
    [t("pool"), me.pool ?? "–"],
    [t("permissionGroup"), me.permission_group],
  ];
  return (
    <Panel title={t("you")}>
      <form onSubmit={save.onSubmit} noValidate>
        <Stack>
          {save.problem !== null && <ProblemNote error={save.problem} />}
          <SimpleGrid cols={2} spacing={4} component="dl" m={0}>
            {facts.map(([name, value]) => (
              <div key={name}>
                <Text component="dt" size="xs" c="dimmed">
                  {name}
                </Text>
                <Text component="dd" m={0} size="sm">
                  {value}
                </Text>
              </div>
            ))}
          </SimpleGrid>
          <TextInput
            label={t("displayName")}
            autoComplete="name"
            maxLength={ProfileEdit.display_name.most}
            {...form.getInputProps("display_name")}
          />
          <TextInput label={t("email")} type="email" autoComplete="email" {...form.getInputProps("email")} />
          <Group justify="flex-end">
            <Button type="submit" loading={save.busy} disabled={!form.isDirty()}>
              {c("save")}
            </Button>
          </Group>
        </Stack>
      </form>
    </Panel>
  );
}

function Look() {
  const t = useTexts(texts);
  const { language, setLanguage } = usePreferences();
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const names = Object.entries(LANGUAGES) as [Language, string][];
  return (
    <Panel title={t("look")}>
      <Stack gap="sm">
        <Select
          label={t("language")}
          allowDeselect={false}
          data={names.map(([value, label]) => ({ value, label }))}
          value={language}
          onChange={(value) => value !== null && setLanguage(value)}
        />
        <div>
          <Text size="sm" fw={500} mb={4} id="theme-label">
            {t("theme")}
          </Text>
          <SegmentedControl
            fullWidth
            aria-labelledby="theme-label"
            data={(["light", "dark", "auto"] as const).map((value) => ({ value, label: t(value) }))}
            value={colorScheme}
            onChange={setColorScheme}
          />
        </div>
        <Text size="xs" c="dimmed">
          {t("lookHint")}
        </Text>
        <ShowFirstSteps />
      </Stack>
    </Panel>
  );
}

/** Only for those who have dismissed them. */
function ShowFirstSteps() {
  const t = useTexts(texts);
  const { data } = $api.useQuery("get", "/me/first-steps");
  const show = useAction<void, Schema<"FirstStepsView">>({
    run: () => sent(api.PUT("/me/first-steps", { body: { dismissed: false } })),
    touches: ["/me/first-steps"],
    done: () => t("firstStepsShown"),
  });
  if (data?.dismissed !== true) return null;
  return (
    <Button variant="default" size="xs" loading={show.isPending} onClick={() => show.mutate()}>
      {t("firstSteps")}
    </Button>
  );
}

const NO_PASSWORDS = { old: "", new: "", again: "", revokeTokens: false };

function Password({ me }: { me: Me }) {
  const t = useTexts(texts);
  const form = useForm({
    initialValues: NO_PASSWORDS,
    validateInputOnBlur: true,
    validate: {
      new: (text) => (text.length < LEAST_CHARACTERS ? t("tooShort", { n: LEAST_CHARACTERS }) : null),
      again: (again, values) => (again === values.new ? null : t("differ")),
    },
  });
  const change = useFormAction(form, {
    run: (values: typeof NO_PASSWORDS) =>
      sent(
        api.POST("/me/password", {
          body: { old: values.old, new: values.new, revoke_tokens: values.revokeTokens },
        }),
      ),
    touches: ["/me", "/me/tokens"],
    done: () => t("passwordChanged"),
    onDone: () => form.reset(),
  });
  if (me.provider !== "local") {
    return (
      <Panel title={t("password")}>
        <Text size="sm">{t("passwordElsewhere", { provider: me.provider })}</Text>
      </Panel>
    );
  }
  return (
    <Panel title={t("password")}>
      <form onSubmit={change.onSubmit} noValidate>
        <input type="hidden" name="username" autoComplete="username" value={me.name} readOnly />
        <Stack gap="sm">
          {change.problem !== null && <ProblemNote error={change.problem} />}
          <PasswordInput label={t("present")} autoComplete="current-password" required {...form.getInputProps("old")} />
          <PasswordInput label={t("next")} autoComplete="new-password" required {...form.getInputProps("new")} />
          <PasswordInput label={t("again")} autoComplete="new-password" required {...form.getInputProps("again")} />
          <Checkbox
            label={t("revokeTokens")}
            description={t("revokeTokensHint")}
            {...form.getInputProps("revokeTokens", { type: "checkbox" })}
          />
          <Group justify="space-between">
            <Text size="xs" c="dimmed">
              {t("passwordHint")}
            </Text>
            <Button type="submit" loading={change.busy}>
              {t("changePassword")}
            </Button>
          </Group>
        </Stack>
      </form>
    </Panel>
  );
}
