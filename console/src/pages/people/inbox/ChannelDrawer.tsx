/** A new channel of one's inbox, or what an existing one gets. */
import { Button, Checkbox, Select, SimpleGrid, Text, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";

import { api, sent, type Schema } from "@/api/client";
import { INBOX_KINDS, PERSONAL_CHANNEL_KINDS } from "@/api/enumerations";
import { InboxChannelCreate } from "@/api/limits";
import { useAction } from "@/api/useAction";
import { channelTexts as texts } from "@/pages/people/inbox/channelTexts";
import { kinds as kindTexts } from "@/pages/people/inbox/texts";
import { useConfirm } from "@/parts/confirm";
import { FormDrawer } from "@/parts/FormDrawer";
import { useFormAction } from "@/parts/useFormAction";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

type ChannelView = Schema<"InboxChannelView">;

interface Draft {
  readonly name: string;
  readonly kind: ChannelView["kind"];
  readonly address: string;
  readonly kinds: readonly string[];
}

interface Props {
  readonly channel?: ChannelView;
  readonly allowed: readonly ChannelView["kind"][];
  readonly onClose: () => void;
}

export function ChannelDrawer({ channel, allowed, onClose }: Props) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const k = useTexts(kindTexts);
  const form = useForm<Draft>({
    initialValues: {
      name: "",
      kind: allowed[0] ?? "webhook",
      address: "",
      kinds: channel === undefined || channel.kinds.length === 0 ? INBOX_KINDS : channel.kinds,
    },
    validateInputOnBlur: true,
    validate: (draft) => {
      const errors: Record<string, string> = {};
      if (channel === undefined && !/^[a-z0-9][a-z0-9-]*$/.test(draft.name)) errors.name = t("nameHint");
      if (channel === undefined && draft.address.trim() === "") errors.address = c("required");
      if (draft.kinds.length === 0) errors.kinds = t("noKinds");
      return errors;
    },
  });
  const save = useFormAction(form, {
    run: (draft: Draft) => {
      // All of them: kinds that come later are sent, too.
      const kinds = draft.kinds.length === INBOX_KINDS.length ? [] : [...draft.kinds];
      return channel === undefined
        ? sent(
            api.POST("/me/inbox/channels", {
              body: { name: draft.name, kind: draft.kind, address: draft.address.trim(), kinds },
            }),
          )
        : sent(api.PATCH("/me/inbox/channels/{name}", { params: { path: { name: channel.name } }, body: { kinds } }));
    },
    touches: ["/me/inbox/channels"],
    done: (after) => (after.confirmed ? t("saved", { name: after.name }) : t("codeSent", { address: after.address })),
    onDone: onClose,
  });
  const isMail = form.values.kind === "mail";
  return (
    <FormDrawer
      opened
      title={channel === undefined ? t("newChannel") : t("editChannel", { name: channel.name })}
      submitLabel={channel === undefined ? c("create") : c("save")}
      onClose={onClose}
      {...save}
      foot={channel !== undefined && <Removal channel={channel} onGone={onClose} />}
    >
      {channel === undefined ? (
        <>
          <TextInput
            label={t("name")}
            description={t("nameHint")}
            required
            data-autofocus
            maxLength={63}
            {...form.getInputProps("name")}
          />
          <Select
            label={t("kind")}
            allowDeselect={false}
            data={PERSONAL_CHANNEL_KINDS.filter((one) => allowed.includes(one)).map((value) => ({
              value,
              label: t(value),
            }))}
            {...form.getInputProps("kind")}
          />
          <TextInput
            label={isMail ? t("mailAddress") : t("url")}
            description={isMail ? t("mailHint") : t("urlHint")}
            type={isMail ? "email" : "url"}
            required
            autoComplete={isMail ? "email" : "off"}
            maxLength={InboxChannelCreate.address.most}
            {...form.getInputProps("address")}
          />
        </>
      ) : (
        <Text size="sm" c="dimmed">
          {t(channel.kind)}: {channel.address}
        </Text>
      )}
      <Checkbox.Group label={t("sends")} description={t("sendsHint")} {...form.getInputProps("kinds")}>
        <SimpleGrid cols={2} spacing="xs" mt="xs">
          {INBOX_KINDS.map((one) => (
            <Checkbox key={one} value={one} label={k(one)} />
          ))}
        </SimpleGrid>
      </Checkbox.Group>
    </FormDrawer>
  );
}

function Removal({ channel, onGone }: { channel: ChannelView; onGone: () => void }) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const confirm = useConfirm();
  const { name } = channel;
  const remove = useAction({
    run: () => sent(api.DELETE("/me/inbox/channels/{name}", { params: { path: { name } } })),
    touches: ["/me/inbox/channels"],
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
          text: t("deleteText", { address: channel.address }),
          action: t("deleteAction"),
          onConfirm: () => remove.mutate(undefined),
        })
      }
    >
      {c("delete")}
    </Button>
  );
}
