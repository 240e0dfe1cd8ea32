import { ActionIcon, Button, Textarea, Text, TextInput, Tooltip } from "@mantine/core";
import { useForm } from "@mantine/form";
import { KeyRound, Plus, Trash2 } from "lucide-react";
import { useMemo } from "react";

import { api, sent, type Schema } from "@/api/client";
import { SshKeyCreate } from "@/api/limits";
import { useAction } from "@/api/useAction";
import { useAll } from "@/api/useAll";
import { useFilters } from "@/app/useFilters";
import { texts } from "@/pages/system/settings/texts";
import { useConfirm } from "@/parts/confirm";
import { DataTable, type Column } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { FormDrawer } from "@/parts/FormDrawer";
import { Moment } from "@/parts/Moment";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { useFormAction } from "@/parts/useFormAction";
import { common } from "@/texts/common";
import { useTexts, type Say } from "@/texts/texts";

type SshKeyView = Schema<"SshKeyView">;
const FILTERS = { create: "" };

export function KeysTab() {
  const t = useTexts(texts);
  const [filters, setFilters] = useFilters(FILTERS);
  const { data, error, refetch } = useAll("/me/ssh-keys");
  const columns = useMemo(() => columnsOf(t), [t]);
  const add = (
    <Button leftSection={<Plus size={15} />} onClick={() => setFilters({ create: "1" })}>
      {t("addKey")}
    </Button>
  );
  if (error !== null && data === undefined) return <ProblemNote error={error} onRetry={() => void refetch()} />;
  return (
    <Panel title={t("keys")} tools={data?.length === 0 ? undefined : add}>
      <Text size="sm" c="dimmed" mb="sm">
        {t("keysHint")}
      </Text>
      <DataTable
        label={t("keys")}
        rows={data}
        columns={columns}
        rowKey={(key) => key.id}
        actions={(key) => <Removal sshKey={key} />}
        empty={
          <EmptyState icon={KeyRound} title={t("noKeys")} hint={t("noKeysHint")}>
            {add}
          </EmptyState>
        }
      />
      {filters.create !== "" && <KeyForm onClose={() => setFilters({ create: "" })} />}
    </Panel>
  );
}

function columnsOf(t: Say<typeof texts>): Column<SshKeyView>[] {
  return [
    { key: "name", title: t("keyName"), sort: (key) => key.name, render: (key) => key.name },
    {
      key: "fingerprint",
      title: t("fingerprint"),
      render: (key) => <code style={{ overflowWrap: "anywhere", whiteSpace: "normal" }}>{key.fingerprint}</code>,
    },
    {
      key: "added",
      title: t("added"),
      wide: true,
      sort: (key) => key.created_at,
      render: (key) => <Moment at={key.created_at} />,
    },
  ];
}

function Removal({ sshKey }: { sshKey: SshKeyView }) {
  const t = useTexts(texts);
  const confirm = useConfirm();
  const { name } = sshKey;
  const remove = useAction({
    run: () => sent(api.DELETE("/me/ssh-keys/{key}", { params: { path: { key: sshKey.id } } })),
    touches: ["/me/ssh-keys"],
    optimistic: (cache) => cache.dropItems<SshKeyView>("/me/ssh-keys", (one) => one.id === sshKey.id),
    done: () => t("keyRemoved", { name }),
  });
  return (
    <Tooltip label={t("removeKey")}>
      <ActionIcon
        variant="subtle"
        color="red"
        aria-label={`${t("removeKey")}: ${name}`}
        onClick={() =>
          confirm({
            title: t("removeKeyTitle", { name }),
            text: t("removeKeyText"),
            action: t("removeKey"),
            onConfirm: () => remove.mutate(undefined),
          })
        }
      >
        <Trash2 size={15} />
      </ActionIcon>
    </Tooltip>
  );
}

function KeyForm({ onClose }: { onClose: () => void }) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const form = useForm({
    initialValues: { name: "", public_key: "" },
    validateInputOnChange: ["public_key"],
    validate: {
      name: (name, { public_key }) => ((name.trim() || usualName(public_key)) === "" ? c("required") : null),
      public_key: (text) =>
        text.includes("PRIVATE KEY")
          ? t("isPrivate")
          : /^(ssh-|ecdsa-|sk-)\S+\s+\S/.test(text.trim())
            ? null
            : t("notKey"),
    },
  });
  const add = useFormAction(form, {
    run: (body: { name: string; public_key: string }) =>
      sent(
        api.POST("/me/ssh-keys", {
          body: { name: body.name.trim() || usualName(body.public_key), public_key: body.public_key.trim() },
        }),
      ),
    touches: ["/me/ssh-keys"],
    done: (key) => t("keyAdded", { name: key.name }),
    onDone: onClose,
  });
  return (
    <FormDrawer opened title={t("addKey")} submitLabel={t("addKey")} onClose={onClose} {...add}>
      <Textarea
        label={t("publicKey")}
        description={t("publicKeyHint")}
        required
        autosize
        minRows={4}
        spellCheck={false}
        data-autofocus
        {...form.getInputProps("public_key")}
      />
      <TextInput
        label={t("keyName")}
        description={t("keyNameHint")}
        required={usualName(form.values.public_key) === ""}
        placeholder={usualName(form.values.public_key)}
        maxLength={SshKeyCreate.name.most}
        {...form.getInputProps("name")}
      />
    </FormDrawer>
  );
}

/** A key ends with whose it is: a good name for it where none was given. */
function usualName(publicKey: string): string {
  return publicKey.trim().split(/\s+/)[2]?.slice(0, 63) ?? "";
}
