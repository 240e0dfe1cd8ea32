import { Group, PasswordInput, Switch, TextInput } from "@mantine/core";
import type { UseFormReturnType } from "@mantine/form";

import type { ChannelDraft } from "@/pages/alerts/channels/ChannelForm";
import { texts } from "@/pages/alerts/channels/texts";
import { useTexts } from "@/texts/texts";

/** The fields for the address of a channel, by its kind. */
export function AddressFields({ form }: { form: UseFormReturnType<ChannelDraft> }) {
  const t = useTexts(texts);
  const error = form.errors.url;
  switch (form.values.kind) {
    case "mail":
      return <MailFields form={form} />;
    case "telegram":
      return (
        <>
          <PasswordInput
            label={t("botToken")}
            required
            autoComplete="new-password"
            {...form.getInputProps("botToken")}
            error={form.errors.botToken ?? error}
          />
          <TextInput label={t("chat")} required {...form.getInputProps("chat")} />
        </>
      );
    case "other":
      return (
        <PasswordInput
          label={t("apprise")}
          description={t("appriseHint")}
          required
          autoComplete="new-password"
          {...form.getInputProps("apprise")}
          error={form.errors.apprise ?? error}
        />
      );
    default: {
      const hint = form.values.kind === "webhook" ? t("ownHook") : t("hookHint");
      return (
        <PasswordInput
          label={t("hook")}
          description={hint}
          required
          placeholder="https://"
          autoComplete="new-password"
          {...form.getInputProps("hook")}
          error={form.errors.hook ?? error}
        />
      );
    }
  }
}

function MailFields({ form }: { form: UseFormReturnType<ChannelDraft> }) {
  const t = useTexts(texts);
  return (
    <>
      <Group grow preventGrowOverflow={false} align="flex-start">
        <TextInput
          label={t("host")}
          required
          placeholder="mail.example.org"
          {...form.getInputProps("host")}
          error={form.errors.host ?? form.errors.url}
        />
        <TextInput label={t("port")} maw={110} inputMode="numeric" placeholder="587" {...form.getInputProps("port")} />
      </Group>
      <Group grow align="flex-start">
        <TextInput label={t("account")} autoComplete="off" {...form.getInputProps("account")} />
        <PasswordInput label={t("password")} autoComplete="new-password" {...form.getInputProps("password")} />
      </Group>
      <TextInput label={t("sender")} placeholder="corral@example.org" {...form.getInputProps("sender")} />
      <TextInput
        label={t("receivers")}
        description={t("receiversHint")}
        required
        placeholder="ops@example.org"
        {...form.getInputProps("receivers")}
      />
      <Switch label={t("encrypted")} {...form.getInputProps("encrypted", { type: "checkbox" })} />
    </>
  );
}
