import { Alert, Button, Divider, NativeSelect, PasswordInput, Stack, Text, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { $api, api, PREFIX, sent } from "@/api/client";
import { problemOf } from "@/api/problem";
import { safeNext } from "@/app/addresses";
import { texts } from "@/app/signin/texts";
import { SignInFrame } from "@/app/signin/SignInFrame";
import { useTexts } from "@/texts/texts";

export default function SignIn({ onDone }: { onDone: () => void }) {
  const t = useTexts(texts);
  const queries = useQueryClient();
  const [failure, setFailure] = useState<string>();
  const [busy, setBusy] = useState(false);
  const [chosen, setChosen] = useState<string>();
  const form = useForm({ initialValues: { user: "", password: "" } });
  const providers = $api.useQuery("get", "/auth/providers", {}, { retry: false });

  // The form above is itself one of the ways.
  const listed = providers.data?.items.filter((provider) => provider.kind !== "local") ?? [];
  const outside = listed.filter((provider) => provider.kind !== "ldap");
  const directories = listed.filter((provider) => provider.kind === "ldap");
  // The choice is always in sight, so that no local password goes to a directory by mistake.
  const directory = chosen ?? directories[0]?.id ?? "";

  async function signIn(values: { user: string; password: string }) {
    setBusy(true);
    setFailure(undefined);
    try {
      await sent(api.POST("/auth/login", { body: directory === "" ? values : { ...values, provider: directory } }));
      // Removes all cached data of the user who was signed in before in this tab.
      queries.removeQueries({ predicate: (query) => query.queryKey[1] !== "/me" });
      onDone();
    } catch (error) {
      setFailure(problemOf(error).detail);
      form.setFieldValue("password", "");
    } finally {
      setBusy(false);
    }
  }

  return (
    <SignInFrame title={t("title")}>
      <form onSubmit={form.onSubmit((values) => void signIn(values))}>
        <Stack gap="sm">
          {failure !== undefined && (
            <Alert color="red" role="alert">
              {failure}
            </Alert>
          )}
          {directories.length > 0 && (
            <NativeSelect
              label={t("account")}
              data={[
                ...directories.map((provider) => ({ value: provider.id, label: provider.title })),
                { value: "", label: t("local") },
              ]}
              value={directory}
              onChange={(event) => setChosen(event.currentTarget.value)}
            />
          )}
          <TextInput
            label={t("user")}
            name="user"
            autoComplete="username"
            required
            autoFocus
            {...form.getInputProps("user")}
          />
          <PasswordInput
            label={t("password")}
            name="password"
            autoComplete="current-password"
            required
            {...form.getInputProps("password")}
          />
          <Button type="submit" size="sm" loading={busy} fullWidth>
            {t("signIn")}
          </Button>
        </Stack>
      </form>
      {outside.length > 0 && (
        <Stack gap="xs" mt="md">
          <Divider label={t("or")} />
          {outside.map((provider) => (
            <Button
              key={provider.id}
              component="a"
              variant="default"
              size="sm"
              href={`${PREFIX}/auth/${encodeURIComponent(provider.id)}/login?next=${encodeURIComponent(wanted())}`}
            >
              {t("with", { name: provider.title })}
            </Button>
          ))}
        </Stack>
      )}
      <Text size="xs" c="dimmed" mt="lg" ta="center">
        {t("terminal")}
      </Text>
    </SignInFrame>
  );
}

/** Where the person was going: the present address, or what the sign-in page was asked for. */
function wanted(): string {
  const { pathname, search } = window.location;
  return pathname === "/signin" ? safeNext(new URLSearchParams(search).get("next")) : safeNext(pathname + search);
}
