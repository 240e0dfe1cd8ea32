import { Text, Textarea, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { useState } from "react";

import { api, sent, type Schema } from "@/api/client";
import type { Problem } from "@/api/problem";
import { useAction } from "@/api/useAction";
import { texts } from "@/pages/fleet/pools/texts";
import { fieldErrors } from "@/parts/fieldErrors";
import { FormDrawer } from "@/parts/FormDrawer";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

interface Values {
  readonly name: string;
  readonly description: string;
}

const NAME = /^[A-Za-z0-9_-]{1,63}$/;

/** A new pool, or another description for one that is there. */
export function PoolForm({
  pool,
  taken,
  onClose,
  onCreated,
}: {
  pool: Schema<"PoolView"> | undefined;
  taken: readonly string[];
  onClose: () => void;
  onCreated: (name: string) => void;
}) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const [problem, setProblem] = useState<Problem | null>(null);
  const isNew = pool === undefined;
  const form = useForm<Values>({
    initialValues: { name: pool?.name ?? "", description: pool?.description ?? "" },
    validateInputOnChange: true,
    validate: {
      name: (name) =>
        !isNew
          ? null
          : name === ""
            ? c("required")
            : !NAME.test(name)
              ? t("nameBad")
              : taken.includes(name)
                ? t("nameTaken")
                : null,
    },
  });
  const save = useAction<Values, Schema<"PoolDetailView">>({
    run: ({ name, description }) =>
      sent(
        isNew
          ? api.POST("/pools", { body: { name, description, gpus: [] } })
          : api.PATCH("/pools/{name}", { params: { path: { name } }, body: { description } }),
      ),
    touches: ["/pools", "/gpus", "/queues"],
    done: (_, { name }) => t(isNew ? "created" : "saved", { name }),
    onDone: (_, { name }) => (isNew ? onCreated(name) : onClose()),
    onProblem: (refused) => {
      const { beside, rest } = fieldErrors(refused, ["name", "description"]);
      form.setErrors(beside);
      setProblem(rest);
    },
  });
  return (
    <FormDrawer
      opened
      title={isNew ? t("createTitle") : t("editTitle", { name: pool.name })}
      onClose={onClose}
      onSubmit={form.onSubmit((values) => save.mutate(values))}
      submitLabel={isNew ? c("create") : c("save")}
      busy={save.isPending}
      problem={problem}
    >
      {isNew && (
        <TextInput
          label={c("name")}
          description={t("nameHint")}
          required
          data-autofocus
          {...form.getInputProps("name")}
        />
      )}
      <Textarea label={c("description")} autosize minRows={2} maxLength={1000} {...form.getInputProps("description")} />
      {isNew && (
        <Text size="sm" c="dimmed">
          {t("gpusHint")}
        </Text>
      )}
    </FormDrawer>
  );
}
