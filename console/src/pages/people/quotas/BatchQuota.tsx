/** The same limits for many users: only what is ticked changes. */
import { Checkbox, Group, Stack, Text, TextInput } from "@mantine/core";
import { useState, type FormEvent } from "react";

import { api, sent, type Schema } from "@/api/client";
import { JOB_KINDS } from "@/api/enumerations";
import type { Problem } from "@/api/problem";
import { useAction } from "@/api/useAction";
import { parsed, RESOURCES, type KindName, type Resource } from "@/pages/people/quotas/amounts";
import { texts } from "@/pages/people/quotas/texts";
import { FormDrawer } from "@/parts/FormDrawer";
import { common, kinds } from "@/texts/common";
import { useTexts } from "@/texts/texts";

/** `users` is undefined for everybody. */
export function BatchQuota({
  users,
  onClose,
  onDone,
}: {
  users: readonly string[] | undefined;
  onClose: () => void;
  onDone: () => void;
}) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const k = useTexts(kinds);
  const [chosen, setChosen] = useState<string[]>([...JOB_KINDS]);
  const [limits, setLimits] = useState<Partial<Record<Resource, string>>>({});
  const [problem, setProblem] = useState<Problem | null>(null);
  const save = useAction<Schema<"QuotasPut">, Schema<"ListView_QuotaUsageView_">>({
    run: (quota) =>
      sent(
        api.POST("/quotas:batch", {
          body: users === undefined ? { all: true, quota } : { users: [...users], all: false, quota },
        }),
      ),
    touches: ["/quotas", "/users", "/me"],
    done: (answer) => t("batchSaved", { n: answer.items.length }),
    onDone,
    onProblem: setProblem,
  });
  const changes = RESOURCES.filter((what) => limits[what] !== undefined);
  const isBad = changes.some((what) => parsed(what, limits[what] ?? "") === undefined);
  const isEmpty = changes.length === 0 || chosen.length === 0;
  function submit(event: FormEvent) {
    event.preventDefault();
    const one = Object.fromEntries(changes.map((what) => [what, parsed(what, limits[what] ?? "")]));
    const named = JOB_KINDS.filter((kind): kind is KindName => chosen.includes(kind));
    save.mutate(Object.fromEntries(named.map((kind) => [kind, one])));
  }
  return (
    <FormDrawer
      opened
      title={users === undefined ? t("batchTitleAll") : t("batchTitle", { n: users.length })}
      onClose={onClose}
      onSubmit={submit}
      busy={save.isPending}
      disabled={isBad || isEmpty}
      problem={problem}
    >
      <Text size="sm" c="dimmed">
        {isEmpty ? t("chooseSomething") : t("batchHint")}
      </Text>
      <Checkbox.Group label={t("batchKinds")} value={chosen} onChange={setChosen}>
        <Group gap="md" mt={6}>
          {JOB_KINDS.map((kind) => (
            <Checkbox key={kind} value={kind} label={k(kind)} />
          ))}
        </Group>
      </Checkbox.Group>
      {RESOURCES.map((what) => {
        const title = what === "memory_bytes" ? t("memoryUnit") : c(what);
        const text = limits[what];
        return (
          <Stack key={what} gap={4}>
            <Checkbox
              label={t("change", { what: title })}
              checked={text !== undefined}
              onChange={(event) => setLimits({ ...limits, [what]: event.currentTarget.checked ? "" : undefined })}
            />
            {text !== undefined && (
              <TextInput
                aria-label={t("newLimit", { what: title })}
                placeholder={t("placeholder")}
                inputMode="decimal"
                value={text}
                error={parsed(what, text) === undefined ? t("notANumber") : undefined}
                onChange={(event) => setLimits({ ...limits, [what]: event.currentTarget.value })}
              />
            )}
          </Stack>
        );
      })}
    </FormDrawer>
  );
}
