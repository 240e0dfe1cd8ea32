/** A channel to add or to change. Its address goes to the server once and is never shown again. */
import { Button, Select, Switch, Textarea, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { useState } from "react";

import { api, sent, type Schema } from "@/api/client";
import { SEVERITIES } from "@/api/enumerations";
import { ChannelCreate } from "@/api/limits";
import { useAction } from "@/api/useAction";
import { addressOf, isHook, KINDS, NEEDED, NO_PARTS, type Kind, type Parts } from "@/pages/alerts/channels/address";
import { AddressFields } from "@/pages/alerts/channels/AddressFields";
import { texts } from "@/pages/alerts/channels/texts";
import { useConfirm } from "@/parts/confirm";
import { FormDrawer } from "@/parts/FormDrawer";
import { HintedGroup } from "@/parts/HintedGroup";
import { common, states } from "@/texts/common";
import { useFormAction } from "@/parts/useFormAction";
import { useTexts } from "@/texts/texts";

type ChannelView = Schema<"ChannelView">;

export interface ChannelDraft extends Parts {
  readonly name: string;
  readonly kind: Kind;
  readonly min_severity: ChannelView["min_severity"];
  readonly enabled: boolean;
  readonly description: string;
}

function draftOf(channel: ChannelView | undefined): ChannelDraft {
  return {
    ...NO_PARTS,
    kind: "mail",
    name: channel?.name ?? "",
    min_severity: channel?.min_severity ?? "info",
    enabled: channel?.enabled ?? true,
    description: channel?.description ?? "",
  };
}

export function ChannelForm({ channel, onClose }: { channel?: ChannelView; onClose: () => void }) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const s = useTexts(states);
  const [replacing, setReplacing] = useState(channel === undefined);
  const form = useChannelForm(channel, replacing);
  const save = useFormAction(
    form,
    {
      run: (draft: ChannelDraft) => {
        const plain = { min_severity: draft.min_severity, enabled: draft.enabled, description: draft.description };
        const url = addressOf(draft.kind, draft);
        if (channel === undefined) return sent(api.POST("/channels", { body: { ...plain, name: draft.name, url } }));
        return sent(
          api.PATCH("/channels/{name}", {
            params: { path: { name: channel.name } },
            body: replacing ? { ...plain, url } : plain,
          }),
        );
      },
      touches: ["/channels"],
      done: (after) => t("saved", { name: after.name }),
      onDone: onClose,
    },
    ["url"],
  );
  return (
    <FormDrawer
      opened
      title={channel === undefined ? t("newChannel") : t("editChannel", { name: channel.name })}
      submitLabel={channel === undefined ? c("create") : c("save")}
      onClose={onClose}
      {...save}
      foot={channel !== undefined && <Removal channel={channel} onGone={onClose} />}
    >
      {channel === undefined && (
        <TextInput
          label={t("name")}
          description={t("nameHint")}
          required
          data-autofocus
          {...form.getInputProps("name")}
        />
      )}
      {replacing ? (
        <>
          <Select
            label={t("kind")}
            allowDeselect={false}
            data={KINDS.map((value) => ({ value, label: t(value) }))}
            {...form.getInputProps("kind")}
          />
          <HintedGroup label={t("address")} hint={t("secretHint")}>
            <AddressFields form={form} />
          </HintedGroup>
        </>
      ) : (
        <TextInput
          label={t("address")}
          value={channel?.address ?? ""}
          readOnly
          rightSectionWidth={150}
          rightSection={
            <Button variant="subtle" size="compact-xs" onClick={() => setReplacing(true)}>
              {t("replace")}
            </Button>
          }
        />
      )}
      <Select
        label={t("minSeverity")}
        allowDeselect={false}
        data={SEVERITIES.map((value) => ({ value, label: s(value) }))}
        {...form.getInputProps("min_severity")}
      />
      <Textarea
        label={t("description")}
        autosize
        minRows={2}
        maxLength={ChannelCreate.description.most}
        {...form.getInputProps("description")}
      />
      <Switch label={t("enabled")} {...form.getInputProps("enabled", { type: "checkbox" })} />
    </FormDrawer>
  );
}

function useChannelForm(channel: ChannelView | undefined, replacing: boolean) {
  const t = useTexts(texts);
  const c = useTexts(common);
  return useForm<ChannelDraft>({
    initialValues: draftOf(channel),
    validateInputOnBlur: true,
    validate: (draft) => {
      const errors: Record<string, string> = {};
      if (channel === undefined && !/^[a-z0-9][a-z0-9-]*$/.test(draft.name)) errors.name = t("nameHint");
      if (!replacing) return errors;
      for (const part of NEEDED[draft.kind]) if (draft[part] === "") errors[part] = c("required");
      if (NEEDED[draft.kind].includes("hook") && draft.hook !== "" && !isHook(draft.hook))
        errors.hook = t("notAddress");
      return errors;
    },
  });
}

function Removal({ channel, onGone }: { channel: ChannelView; onGone: () => void }) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const confirm = useConfirm();
  const { name } = channel;
  const remove = useAction({
    run: () => sent(api.DELETE("/channels/{name}", { params: { path: { name } } })),
    touches: ["/channels", "/alert-rules"],
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
          text: t("deleteText"),
          action: t("deleteAction"),
          onConfirm: () => remove.mutate(undefined),
        })
      }
    >
      {c("delete")}
    </Button>
  );
}
