/** The users and groups that something is shared with, and whether they may write: one line each. */
import { ActionIcon, Autocomplete, Button, Group, SegmentedControl, Stack, Text, Tooltip } from "@mantine/core";
import type { FormErrors } from "@mantine/form";
import { Plus, Trash2 } from "lucide-react";
import type { ReactNode } from "react";

import { useAll } from "@/api/useAll";
import { useIsOperator } from "@/app/session";
import { texts } from "@/parts/shares.texts";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

export interface Share {
  readonly kind: "user" | "group";
  readonly name: string;
  readonly mode: "ro" | "rw";
}

interface SharesFieldProps {
  readonly shares: readonly Share[];
  readonly onChange: (shares: readonly Share[]) => void;
  /** The error of the share at this index. */
  readonly errorOf: (at: number) => ReactNode;
}

export function SharesField({ shares, onChange, errorOf }: SharesFieldProps) {
  const t = useTexts(texts);
  const isOperator = useIsOperator();
  // Only operators may list users and groups; other users type the names.
  const users = useAll("/users", {}, isOperator).data?.map((user) => user.name) ?? [];
  const groups = useAll("/groups", {}, isOperator).data?.map((group) => group.name) ?? [];
  const change = (at: number, to: Partial<Share>) =>
    onChange(shares.map((one, index) => (index === at ? { ...one, ...to } : one)));
  return (
    <Stack gap="sm">
      {shares.length === 0 && (
        <Text size="sm" c="dimmed">
          {t("notShared")}
        </Text>
      )}
      {shares.map((share, at) => (
        <ShareRow
          key={at}
          at={at}
          share={share}
          names={share.kind === "user" ? users : groups}
          error={errorOf(at)}
          onChange={(to) => change(at, to)}
          onRemove={() => onChange(shares.filter((_, index) => index !== at))}
        />
      ))}
      <Group>
        <Button
          variant="default"
          leftSection={<Plus size={14} />}
          onClick={() => onChange([...shares, { kind: "user", name: "", mode: "ro" }])}
        >
          {t("add")}
        </Button>
      </Group>
    </Stack>
  );
}

interface RowProps {
  readonly at: number;
  readonly share: Share;
  readonly names: readonly string[];
  readonly error: ReactNode;
  readonly onChange: (to: Partial<Share>) => void;
  readonly onRemove: () => void;
}

function ShareRow({ at, share, names, error, onChange, onRemove }: RowProps) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const n = at + 1;
  return (
    <Group gap="xs" align="flex-start" role="group" aria-label={t("shareOf", { n })}>
      <SegmentedControl
        size="xs"
        aria-label={t("kindOf", { n })}
        value={share.kind}
        onChange={(kind) => onChange({ kind: kind === "group" ? "group" : "user" })}
        data={[
          { value: "user", label: c("user") },
          { value: "group", label: c("group") },
        ]}
      />
      <Autocomplete
        style={{ flex: 1, minWidth: 120 }}
        aria-label={t("nameOf", { n })}
        placeholder={c("name")}
        data={[...names]}
        value={share.name}
        error={error}
        onChange={(name) => onChange({ name })}
      />
      <SegmentedControl
        size="xs"
        aria-label={t("modeOf", { n })}
        value={share.mode}
        onChange={(mode) => onChange({ mode: mode === "rw" ? "rw" : "ro" })}
        data={[
          { value: "ro", label: t("ro") },
          { value: "rw", label: t("rw") },
        ]}
      />
      <Tooltip label={c("remove")}>
        <ActionIcon
          variant="subtle"
          color="gray"
          mt={3}
          aria-label={t("remove", { name: share.name === "" ? String(n) : share.name })}
          onClick={onRemove}
        >
          <Trash2 size={15} />
        </ActionIcon>
      </Tooltip>
    </Group>
  );
}

/** The errors of shares by path (`shares.0`): a missing name, or a name given twice. */
export function useShareErrors(): (shares: readonly Share[]) => FormErrors {
  const t = useTexts(texts);
  return (shares) =>
    Object.fromEntries(
      shares.map(({ kind, name }, at) => {
        const first = shares.findIndex((one) => one.kind === kind && one.name === name);
        return [`shares.${at}`, name.trim() === "" ? t("nameMissing") : first < at ? t("twice") : null];
      }),
    );
}

/** The users and groups that something is shared with, as text. */
export function SharesText({ shares }: { shares: readonly Share[] }) {
  const t = useTexts(texts);
  const c = useTexts(common);
  return (
    <Stack gap={2}>
      {shares.map((share) => (
        <span key={`${share.kind} ${share.name}`}>
          {share.name}
          <Text span size="xs" c="dimmed">
            {` ${share.kind === "group" ? `${c("group")} · ` : ""}${t(share.mode)}`}
          </Text>
        </span>
      ))}
    </Stack>
  );
}
