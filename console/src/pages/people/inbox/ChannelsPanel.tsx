/** Where one's inbox is also sent: mail after a code, chats and URLs at once; each can be tested. */
import { Alert, Button, Group, Switch, Text, TextInput } from "@mantine/core";
import { Plus, Send } from "lucide-react";
import { useMemo, useState, type FormEvent } from "react";

import { $api, api, sent, type Schema } from "@/api/client";
import { useAction } from "@/api/useAction";
import { ChannelDrawer } from "@/pages/people/inbox/ChannelDrawer";
import { channelTexts as texts } from "@/pages/people/inbox/channelTexts";
import { kinds as kindTexts } from "@/pages/people/inbox/texts";
import { DataTable, Faint, type Column } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { Moment } from "@/parts/Moment";
import { Panel } from "@/parts/Panel";
import { ProblemNote } from "@/parts/ProblemNote";
import { useTexts } from "@/texts/texts";

type ChannelView = Schema<"InboxChannelView">;

export function ChannelsPanel() {
  const t = useTexts(texts);
  const { data, error, refetch } = $api.useQuery("get", "/me/inbox/channels");
  const [opened, setOpened] = useState<string>();
  const [isNew, setIsNew] = useState(false);
  const [tested, setTested] = useState<ChannelView>();
  const columns = useColumns();
  const channel = data?.items.find((one) => one.name === opened);
  const create = data !== undefined && data.allowed.length > 0 && (
    <Button size="xs" leftSection={<Plus size={15} aria-hidden />} onClick={() => setIsNew(true)}>
      {t("newChannel")}
    </Button>
  );
  if (error !== null && data === undefined) return <ProblemNote error={error} onRetry={() => void refetch()} />;
  return (
    <Panel title={t("channels")} tools={data?.items.length === 0 ? undefined : create}>
      <Text size="sm" c="dimmed" mb="sm">
        {t("channelsHint")}
      </Text>
      {tested !== undefined && (
        <Alert
          color={tested.error === "" ? "teal" : "red"}
          mb="sm"
          role="status"
          withCloseButton
          closeButtonLabel={t("closeResult")}
          onClose={() => setTested(undefined)}
        >
          {t(tested.error === "" ? "testTook" : "testRefused", { name: tested.name, error: tested.error })}
        </Alert>
      )}
      <DataTable
        label={t("channels")}
        rows={data?.items}
        columns={columns}
        rowKey={(one) => one.name}
        onOpen={(one) => setOpened(one.name)}
        actions={(one) => (one.confirmed ? <Actions channel={one} onTested={setTested} /> : <Code channel={one} />)}
        empty={
          <EmptyState icon={Send} title={t("none")} hint={t(create === false ? "notAllowed" : "noneHint")}>
            {create}
          </EmptyState>
        }
      />
      {channel !== undefined && (
        <ChannelDrawer
          key={channel.name}
          channel={channel}
          allowed={data?.allowed ?? []}
          onClose={() => setOpened(undefined)}
        />
      )}
      {isNew && <ChannelDrawer allowed={data?.allowed ?? []} onClose={() => setIsNew(false)} />}
    </Panel>
  );
}

function Actions({ channel, onTested }: { channel: ChannelView; onTested: (channel: ChannelView) => void }) {
  const t = useTexts(texts);
  const { name } = channel;
  const path = { params: { path: { name } } };
  const test = useAction({
    run: () => sent(api.POST("/me/inbox/channels/{name}/test", path)),
    touches: ["/me/inbox/channels"],
    onDone: onTested,
  });
  const flip = useAction({
    run: (enabled: boolean) => sent(api.PATCH("/me/inbox/channels/{name}", { ...path, body: { enabled } })),
    touches: ["/me/inbox/channels"],
    done: (after) => t(after.enabled ? "switchedOn" : "switchedOff", { name }),
  });
  return (
    <Group gap="sm" wrap="nowrap">
      <Button
        variant="default"
        size="compact-xs"
        leftSection={<Send size={13} aria-hidden />}
        loading={test.isPending}
        aria-label={t("testOf", { name })}
        onClick={() => test.mutate(undefined)}
      >
        {t("test")}
      </Button>
      <Switch
        size="sm"
        aria-label={t("on", { name })}
        checked={channel.enabled}
        disabled={flip.isPending}
        onChange={(event) => flip.mutate(event.currentTarget.checked)}
      />
    </Group>
  );
}

function Code({ channel }: { channel: ChannelView }) {
  const t = useTexts(texts);
  const [code, setCode] = useState("");
  const [refusal, setRefusal] = useState<string>();
  const { name, address } = channel;
  const path = { params: { path: { name } } };
  const confirm = useAction({
    run: () => sent(api.POST("/me/inbox/channels/{name}/confirm", { ...path, body: { code: code.trim() } })),
    touches: ["/me/inbox/channels"],
    done: () => t("confirmed", { address }),
    onProblem: (problem) => setRefusal(problem.fields[0]?.detail ?? problem.detail),
  });
  const again = useAction({
    run: () => sent(api.POST("/me/inbox/channels/{name}/code", path)),
    touches: ["/me/inbox/channels"],
    done: (after) => (after.error === "" ? t("codeSent", { address }) : t("codeNotSent", { error: after.error })),
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    setRefusal(undefined);
    confirm.mutate(undefined);
  }
  return (
    <form onSubmit={submit}>
      <Group gap="xs" wrap="nowrap" align="flex-start">
        <TextInput
          size="xs"
          w={110}
          aria-label={t("codeOf", { address })}
          placeholder={t("code")}
          inputMode="numeric"
          autoComplete="one-time-code"
          maxLength={20}
          value={code}
          error={refusal}
          onChange={(event) => setCode(event.currentTarget.value)}
        />
        <Button type="submit" size="xs" loading={confirm.isPending} disabled={code.trim() === ""}>
          {t("confirm")}
        </Button>
        <Button variant="default" size="xs" loading={again.isPending} onClick={() => again.mutate(undefined)}>
          {t("again")}
        </Button>
      </Group>
    </form>
  );
}

function useColumns(): readonly Column<ChannelView>[] {
  const t = useTexts(texts);
  const kind = useTexts(kindTexts);
  return useMemo(
    () => [
      {
        key: "name",
        title: t("channel"),
        sort: (channel) => channel.name,
        render: (channel) => (
          <>
            {channel.name}
            <Faint>
              {t(channel.kind)}: {channel.address}
            </Faint>
            {channel.error !== "" && (
              <Text size="xs" c="red" style={{ whiteSpace: "normal" }}>
                {channel.error}
              </Text>
            )}
          </>
        ),
      },
      {
        key: "sends",
        title: t("sends"),
        wide: true,
        render: (channel) =>
          channel.kinds.length === 0 ? t("everything") : channel.kinds.map((one) => kind(one as "started")).join(", "),
      },
      {
        key: "sent",
        title: t("lastSent"),
        wide: true,
        render: (channel) => channel.sent_at !== null && <Moment at={channel.sent_at} />,
      },
    ],
    [t, kind],
  );
}
