/** A provider to add or to change. Its secrets go to the server and never come back. */
import { Button, PasswordInput, Select, TagsInput, Text, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";

import { api, sent, type Schema } from "@/api/client";
import { PROVIDER_KINDS } from "@/api/enumerations";
import { ProviderCreate } from "@/api/limits";
import { useAction } from "@/api/useAction";
import { useAll } from "@/api/useAll";
import { DirectoryFields, directoryOf, type Directory } from "@/pages/system/settings/providers/DirectoryFields";
import { texts } from "@/pages/system/settings/providers/texts";
import { useConfirm } from "@/parts/confirm";
import { CopyText } from "@/parts/CopyText";
import { FormDrawer } from "@/parts/FormDrawer";
import { useFormAction } from "@/parts/useFormAction";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

export type ProviderView = Schema<"ProviderDetailView">;

interface Draft {
  readonly id: string;
  readonly kind: (typeof PROVIDER_KINDS)[number];
  readonly title: string;
  readonly issuer: string;
  readonly client_id: string;
  readonly client_secret: string;
  readonly api_token: string;
  readonly organisation: string;
  readonly allow: string[];
  /** Empty for none. */
  readonly group: string;
  readonly groups_claim: string;
  readonly group_rules: string[];
  /** Settings of a directory, unused by other kinds. */
  readonly directory: Directory;
}

function draftOf(provider: ProviderView | undefined): Draft {
  return {
    id: provider?.id ?? "",
    kind: PROVIDER_KINDS.find((kind) => kind === provider?.kind) ?? "oidc",
    title: provider?.title ?? "",
    issuer: provider?.issuer ?? "",
    client_id: provider?.client_id ?? "",
    client_secret: "",
    api_token: "",
    organisation: provider?.organisation ?? "",
    allow: provider?.allow ?? [],
    group: provider === undefined ? "default" : (provider.group ?? ""),
    groups_claim: provider?.groups_claim ?? "",
    group_rules: provider?.group_rules ?? [],
    directory: directoryOf(provider?.directory),
  };
}

/** Secrets that were not typed are left as they are. */
function changesOf({ title, issuer, client_id, client_secret, api_token, organisation, ...draft }: Draft) {
  const secrets = { ...(client_secret === "" ? {} : { client_secret }), ...(api_token === "" ? {} : { api_token }) };
  const { allow, group, groups_claim, group_rules } = draft;
  const rules = { allow, group: group === "" ? null : group, groups_claim, group_rules };
  const directory = draft.kind === "ldap" ? { directory: draft.directory } : {};
  return { title, issuer, client_id, organisation, ...rules, ...secrets, ...directory };
}

export function ProviderForm({ provider, onClose }: { provider?: ProviderView; onClose: () => void }) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const { data: groups } = useAll("/groups");
  const form = useProviderForm(provider);
  const save = useFormAction(form, {
    run: (draft: Draft) => {
      if (provider !== undefined)
        return sent(
          api.PATCH("/auth/providers/{id}", { params: { path: { id: provider.id } }, body: changesOf(draft) }),
        );
      return sent(
        api.POST("/auth/providers", {
          body: {
            ...draft,
            group: draft.group === "" ? null : draft.group,
            enabled: false,
            directory: draft.kind === "ldap" ? draft.directory : null,
          },
        }),
      );
    },
    touches: ["/auth/providers"],
    done: (after) => t("saved", { name: after.title || after.id }),
    onDone: onClose,
  });
  const isOidc = form.values.kind === "oidc";
  const isLdap = form.values.kind === "ldap";
  return (
    <FormDrawer
      opened
      title={provider === undefined ? t("newProvider") : t("editProvider", { name: provider.id })}
      submitLabel={provider === undefined ? c("create") : c("save")}
      onClose={onClose}
      {...save}
      foot={provider !== undefined && <Removal provider={provider} onGone={onClose} />}
    >
      {provider === undefined && (
        <>
          <Select
            label={t("kind")}
            allowDeselect={false}
            data={PROVIDER_KINDS.map((value) => ({ value, label: t(value) }))}
            {...form.getInputProps("kind")}
          />
          <TextInput label={t("id")} description={t("idHint")} required {...form.getInputProps("id")} />
        </>
      )}
      <TextInput
        label={t("title")}
        description={t("titleHint")}
        maxLength={ProviderCreate.title.most}
        {...form.getInputProps("title")}
      />
      <TextInput
        label={t("issuer")}
        description={t(isLdap ? "issuerLdap" : isOidc ? "issuerOidc" : "issuerForge")}
        required={isOidc || isLdap}
        {...form.getInputProps("issuer")}
      />
      <TextInput
        label={t(isLdap ? "bindName" : "clientId")}
        description={isLdap ? t("bindNameHint") : undefined}
        required={!isLdap}
        autoComplete="off"
        {...form.getInputProps("client_id")}
      />
      <PasswordInput
        label={t(isLdap ? "bindPassword" : "clientSecret")}
        description={provider?.client_secret_set === true ? t("secretKept") : t("secretHint")}
        autoComplete="new-password"
        {...form.getInputProps("client_secret")}
      />
      {isLdap && <DirectoryFields form={form} isNew={provider === undefined} />}
      {!isOidc && !isLdap && (
        <>
          <TextInput label={t("organisation")} {...form.getInputProps("organisation")} />
          <PasswordInput
            label={t("apiToken")}
            description={provider?.api_token_set === true ? t("secretKept") : t("apiTokenHint")}
            autoComplete="new-password"
            {...form.getInputProps("api_token")}
          />
        </>
      )}
      <TagsInput
        label={t("allow")}
        description={t(isLdap ? "allowHintLdap" : "allowHint")}
        placeholder={isLdap ? "*" : "@example.org"}
        {...form.getInputProps("allow")}
      />
      <Select
        label={t("group")}
        allowDeselect={false}
        data={[{ value: "", label: t("noGroup") }, ...(groups ?? []).map((group) => group.name)]}
        {...form.getInputProps("group")}
      />
      {form.values.kind !== "github" && (
        <>
          <TagsInput
            label={t("groupRules")}
            description={t("groupRulesHint")}
            placeholder="ml-team=vision"
            splitChars={[]}
            {...form.getInputProps("group_rules")}
          />
          <TextInput
            label={t(isLdap ? "groupsAttribute" : "groupsClaim")}
            description={t(isLdap ? "groupsAttributeHint" : "groupsClaimHint")}
            {...form.getInputProps("groups_claim")}
          />
        </>
      )}
      {provider !== undefined && !isLdap && (
        <div>
          <Text size="sm" fw={500}>
            {t("redirect")}
          </Text>
          <CopyText text={provider.redirect_uri} />
        </div>
      )}
    </FormDrawer>
  );
}

function useProviderForm(provider: ProviderView | undefined) {
  const t = useTexts(texts);
  const c = useTexts(common);
  return useForm<Draft>({
    initialValues: draftOf(provider),
    validateInputOnBlur: true,
    validate: {
      id: (id) => (provider !== undefined || /^[a-z0-9][a-z0-9-]*$/.test(id) ? null : t("idHint")),
      client_id: (id, draft) => (id.trim() === "" && draft.kind !== "ldap" ? c("required") : null),
      issuer: (issuer, { kind }) => {
        if (kind === "ldap") return /^ldaps?:\/\/\S+$/.test(issuer) ? null : t("notDirectory");
        return (issuer === "" && kind !== "oidc") || /^https?:\/\/\S+$/.test(issuer) ? null : t("notAddress");
      },
      directory: { base: (base, draft) => (base.trim() === "" && draft.kind === "ldap" ? c("required") : null) },
    },
  });
}

function Removal({ provider, onGone }: { provider: ProviderView; onGone: () => void }) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const confirm = useConfirm();
  const name = provider.title || provider.id;
  const remove = useAction({
    run: () => sent(api.DELETE("/auth/providers/{id}", { params: { path: { id: provider.id } } })),
    touches: ["/auth/providers"],
    done: () => t("deleted", { name }),
    onDone: onGone,
  });
  return (
    <Button
      variant="light"
      color="red"
      loading={remove.isPending}
      onClick={() =>
        confirm({
          title: t("deleteTitle", { name }),
          text: t("deleteText", { n: provider.users }),
          action: t("deleteAction"),
          onConfirm: () => remove.mutate(undefined),
        })
      }
    >
      {c("delete")}
    </Button>
  );
}
