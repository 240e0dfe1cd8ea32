/** A bar with the held part of a limit; a click or Enter turns it into a field. Enter saves, Escape cancels. */
import { Text, TextInput, UnstyledButton } from "@mantine/core";
import { Pencil } from "lucide-react";
import { useState, type KeyboardEvent } from "react";

import type { Schema } from "@/api/client";
import { useMe } from "@/app/session";
import { isBytes, parsed, typed, type What } from "@/pages/people/quotas/amounts";
import classes from "@/pages/people/quotas/QuotaCell.module.css";
import type { CellChange } from "@/pages/people/quotas/useSaveQuota";
import { texts } from "@/pages/people/quotas/texts";
import { Meter } from "@/parts/Meter";
import { counted, part, useQuotaText } from "@/parts/quotaUse";
import { common, kinds, volumeTypes } from "@/texts/common";
import { useFormat } from "@/texts/format";
import { useTexts } from "@/texts/texts";

const names = { ...kinds, ...volumeTypes };

export interface QuotaCellProps {
  readonly user: string;
  /** The kind of jobs, or the type of volumes for `storage`. */
  readonly kind: CellChange["kind"];
  readonly what: What;
  readonly held: Schema<"HeldView">;
  readonly onSave: (change: CellChange) => void;
}

export function QuotaCell({ user, kind, what, held, onSave }: QuotaCellProps) {
  const t = useTexts(texts);
  const whatLabel = useWhat();
  const k = useTexts(names);
  const amountText = useAmountText(what);
  const quotaText = useQuotaText();
  const [isEditing, setEditing] = useState(false);
  const name = { what: whatLabel(what), user, kind: k(kind) };
  if (isEditing) {
    return (
      <LimitField
        label={t("inputLabel", name)}
        what={what}
        held={held}
        onClose={(next) => {
          setEditing(false);
          if (next !== undefined && next !== held.limit) onSave({ user, kind, what, limit: next });
        }}
      />
    );
  }
  const text = quotaText(held, amountText);
  return (
    <UnstyledButton
      aria-label={t("editCell", { ...name, text })}
      onClick={() => setEditing(true)}
      w="100%"
      className={classes.cell}
    >
      {held.limit === null ? (
        <Text size="sm" c="dimmed" className="num" component="span">
          {text}
        </Text>
      ) : (
        <Meter value={part(held)} warnAt={1} width={64} label={text} text={text} />
      )}
      <Pencil size={13} aria-hidden />
    </UnstyledButton>
  );
}

function LimitField({
  label,
  what,
  held,
  onClose,
}: {
  label: string;
  what: What;
  held: Schema<"HeldView">;
  onClose: (limit: number | null | undefined) => void;
}) {
  const t = useTexts(texts);
  const [text, setText] = useState(typed(what, held.limit));
  const hint = useHint(what, held, parsed(what, text));
  const value = parsed(what, text);
  function key(event: KeyboardEvent) {
    if (event.key === "Escape") onClose(undefined);
    if (event.key === "Enter" && value !== undefined) onClose(value);
  }
  return (
    <TextInput
      size="xs"
      w={150}
      autoFocus
      inputMode="decimal"
      aria-label={label}
      placeholder={t("placeholder")}
      value={text}
      error={value === undefined ? t("notANumber") : undefined}
      description={value === undefined ? undefined : hint}
      inputWrapperOrder={["input", "description", "error"]}
      rightSection={isBytes(what) ? <Text size="xs">{t("gib")}</Text> : undefined}
      onChange={(event) => setText(event.currentTarget.value)}
      onKeyDown={key}
      onBlur={() => onClose(value)}
    />
  );
}

/** A hint about a new limit, compared with the held resources and the installation's limit. */
function useHint(what: What, use: Schema<"HeldView">, value: number | null | undefined): string | undefined {
  const t = useTexts(texts);
  const amountText = useAmountText(what);
  const most = useMe().limits.max_gpus_per_user;
  if (value === null || value === undefined) return undefined;
  if (value < counted(use)) return t("belowHeld", { held: amountText(use.held), asked: amountText(use.asked) });
  return what === "gpus" && most !== null && value > most ? t("aboveAll", { limit: most }) : undefined;
}

export function useAmountText(what: What): (value: number) => string {
  const format = useFormat();
  return (value) => (isBytes(what) ? format.bytes(value) : format.number(value));
}

export function useWhat(): (what: What) => string {
  const t = useTexts(texts);
  const c = useTexts(common);
  return (what) => (what === "storage" ? t("storage") : c(what === "memory_bytes" ? "memory" : what));
}
