import { PasswordInput, Switch, TextInput } from "@mantine/core";
import { useState, type FormEvent } from "react";

import { api, sent } from "@/api/client";
import type { Problem } from "@/api/problem";
import { useAction } from "@/api/useAction";
import { useIsOperator } from "@/app/session";
import type { Login } from "@/pages/images/LoginList";
import { IMAGE_NAME, REGISTRY } from "@/pages/images/rules";
import { words } from "@/pages/images/words";
import { FormDrawer } from "@/parts/FormDrawer";
import { common } from "@/words/common";
import { useWords } from "@/words/words";

const NEW = { name: "", registry: "", username: "", secret: "", platform: false };

/** A new login, or another secret for one that there is. */
export function LoginDrawer({
  login,
  opened,
  onClose,
}: {
  login: Login | undefined;
  opened: boolean;
  onClose: () => void;
}) {
  const t = useWords(words);
  const c = useWords(common);
  const isOperator = useIsOperator();
  const [fields, setFields] = useState(() =>
    login === undefined
      ? NEW
      : { ...NEW, name: login.name, registry: login.registry, username: login.username, platform: login.platform },
  );
  const [isAttempted, setAttempted] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const save = useAction<typeof NEW, Login>({
    run: ({ name, ...body }) => sent(api.PUT("/registry-logins/{login}", { params: { path: { login: name } }, body })),
    touches: ["/registry-logins"],
    done: ({ name }) => t("saved", { name }),
    onDone: onClose,
    onProblem: setProblem,
  });
  const bad: Readonly<Record<string, string | undefined>> = {
    name: fields.name !== "" && !IMAGE_NAME.test(fields.name) ? t("nameBad") : undefined,
    registry: fields.registry !== "" && !REGISTRY.test(fields.registry) ? t("registryBad") : undefined,
  };
  const field = (name: "name" | "registry" | "username" | "secret") => ({
    name,
    value: fields[name],
    withAsterisk: true,
    error:
      bad[name] ??
      (fields[name] === "" && isAttempted ? t("needed") : problem?.fields.find((one) => one.field === name)?.detail),
    onChange: (event: { currentTarget: { value: string } }) => {
      const { value } = event.currentTarget;
      setFields((before) => ({ ...before, [name]: value }));
    },
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    setAttempted(true);
    setProblem(null);
    const isWhole = fields.name !== "" && fields.registry !== "" && fields.username !== "" && fields.secret !== "";
    if (isWhole && bad.name === undefined && bad.registry === undefined) save.mutate(fields);
  }
  return (
    <FormDrawer
      opened={opened}
      title={login === undefined ? t("loginTitle") : t("loginReplaceTitle", { name: login.name })}
      onClose={onClose}
      onSubmit={submit}
      busy={save.isPending}
      problem={problem}
    >
      <TextInput
        label={c("name")}
        disabled={login !== undefined}
        data-autofocus={login === undefined || undefined}
        {...field("name")}
      />
      <TextInput label={t("registry")} placeholder="registry.example.org" {...field("registry")} />
      <TextInput label={t("username")} autoComplete="off" {...field("username")} />
      <PasswordInput
        label={t("secret")}
        description={t("secretHint")}
        autoComplete="new-password"
        {...field("secret")}
      />
      {isOperator && (
        <Switch
          label={t("forPlatform")}
          checked={fields.platform}
          disabled={login !== undefined}
          onChange={(event) => setFields({ ...fields, platform: event.currentTarget.checked })}
        />
      )}
    </FormDrawer>
  );
}
