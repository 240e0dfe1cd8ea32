import { Alert, Button, PasswordInput, Stack, Text } from "@mantine/core";
import { useForm } from "@mantine/form";
import { useState } from "react";

import { api, sent, type Schema } from "@/api/client";
import { problemOf } from "@/api/problem";
import { SignInFrame } from "@/app/signin/SignInFrame";
import { texts } from "@/app/signin/texts";
import { useTexts } from "@/texts/texts";

export default function ChangePassword({ me, onDone }: { me: Schema<"MeView">; onDone: () => void }) {
  const t = useTexts(texts);
  const [failure, setFailure] = useState<string>();
  const [busy, setBusy] = useState(false);
  const form = useForm({
    initialValues: { old: "", new: "", again: "" },
    validate: { again: (again, values) => (again === values.new ? null : t("differ")) },
  });

  async function change(values: { old: string; new: string }) {
    setBusy(true);
    setFailure(undefined);
    try {
      await sent(api.POST("/me/password", { body: { old: values.old, new: values.new } }));
      onDone();
    } catch (error) {
      setFailure(problemOf(error).detail);
    } finally {
      setBusy(false);
    }
  }

  return (
    <SignInFrame title={t("changeTitle")}>
      <Text size="sm" c="dimmed" mb="md">
        {t("changeHint")}
      </Text>
      <form onSubmit={form.onSubmit((values) => void change(values))}>
        <input type="hidden" name="username" autoComplete="username" value={me.name} readOnly />
        <Stack gap="sm">
          {failure !== undefined && (
            <Alert color="red" role="alert">
              {failure}
            </Alert>
          )}
          <PasswordInput
            label={t("present")}
            name="old"
            autoComplete="current-password"
            required
            autoFocus
            {...form.getInputProps("old")}
          />
          <PasswordInput
            label={t("next")}
            name="new"
            autoComplete="new-password"
            required
            {...form.getInputProps("new")}
          />
          <PasswordInput
            label={t("again")}
            name="again"
            autoComplete="new-password"
            required
            {...form.getInputProps("again")}
          />
          <Button type="submit" size="sm" loading={busy}>
            {t("change")}
          </Button>
        </Stack>
      </form>
    </SignInFrame>
  );
}
