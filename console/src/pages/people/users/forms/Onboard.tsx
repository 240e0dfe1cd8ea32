/** People whom a sign-in provider knows become users: many at once, with the same group and permission group. */
import { Button, Checkbox, Group, Select, Table, Text, Title } from "@mantine/core";
import { useForm } from "@mantine/form";
import { Link } from "@tanstack/react-router";
import { LogIn, RefreshCw, UserPlus } from "lucide-react";
import { useState } from "react";

import { api, Problem, sent, type Schema } from "@/api/client";
import { useAction } from "@/api/useAction";
import { useAll, usePages } from "@/api/useAll";
import { Belonging } from "@/pages/people/users/forms/UserFields";
import { texts } from "@/pages/people/users/texts";
import { Faint } from "@/parts/DataTable";
import { EmptyState } from "@/parts/EmptyState";
import { FormDrawer } from "@/parts/FormDrawer";
import { ProblemNote } from "@/parts/ProblemNote";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

type Person = Schema<"IdentityView">;
interface Wanted {
  readonly provider: string;
  readonly subjects: readonly string[];
  readonly group: string;
  readonly permission_group: string;
  readonly operators: readonly string[];
}

export function Onboard({ onClose }: { onClose: () => void }) {
  const t = useTexts(texts);
  const providers = useAll("/auth/providers/all");
  const [problem, setProblem] = useState<Problem | null>(null);
  const [chosenProvider, setProvider] = useState<string>();
  const [subjects, setSubjects] = useState<ReadonlySet<string>>(new Set());
  const [isOperator, setOperator] = useState(false);
  const form = useForm({ initialValues: { group: "default", permission_group: "everyone" } });
  const provider = chosenProvider ?? providers.data?.[0]?.id;
  const isWithoutOperator = providers.data?.find((one) => one.id === provider)?.has_operator === false;
  const first = isWithoutOperator ? [...subjects][0] : undefined;
  const onboard = useAction<Wanted, readonly Schema<"UserView">[]>({
    run: (wanted) => onboardAll(wanted, t("onboardedPartly", { group: wanted.permission_group })),
    touches: ["/users", "/groups", "/permission-groups", "/auth/providers", "/quotas"],
    done: (made) => t("onboarded", { names: made.map((user) => user.name).join(", ") }),
    onDone: onClose,
    onProblem: setProblem,
  });
  return (
    <FormDrawer
      opened
      size="lg"
      title={t("onboardTitle")}
      onClose={onClose}
      problem={problem}
      busy={onboard.isPending}
      disabled={subjects.size === 0}
      submitLabel={t("onboardAction", { n: subjects.size })}
      onSubmit={form.onSubmit((values) => {
        const operators = isOperator && first !== undefined ? [first] : [];
        if (provider !== undefined) onboard.mutate({ ...values, provider, subjects: [...subjects], operators });
      })}
    >
      {providers.error !== null && <ProblemNote error={providers.error} onRetry={() => void providers.refetch()} />}
      {providers.data?.length === 0 && <NoProviders />}
      {provider !== undefined && (
        <>
          <Select
            label={t("chooseProvider")}
            allowDeselect={false}
            data={providers.data?.map((one) => ({ value: one.id, label: one.title === "" ? one.id : one.title })) ?? []}
            value={provider}
            onChange={(id) => {
              setProvider(id ?? undefined);
              setSubjects(new Set());
            }}
          />
          <People provider={provider} chosen={subjects} onChoose={setSubjects} />
          {first !== undefined && (
            <OperatorOffer provider={provider} subject={first} checked={isOperator} onChange={setOperator} />
          )}
          <Title order={3}>{t("forAll")}</Title>
          <Belonging group={form.getInputProps("group")} permissionGroup={form.getInputProps("permission_group")} />
        </>
      )}
    </FormDrawer>
  );
}

/** The first person of a provider may be its operator. */
function OperatorOffer({
  provider,
  subject,
  checked,
  onChange,
}: {
  provider: string;
  subject: string;
  checked: boolean;
  onChange: (isOperator: boolean) => void;
}) {
  const t = useTexts(texts);
  const people = usePages("/auth/providers/{id}/people", { limit: 500 }, { id: provider });
  const login = people.items?.find((person) => person.subject === subject)?.login ?? subject;
  return (
    <Checkbox
      label={t("offerOperator", { login })}
      description={t("offerOperatorHint")}
      checked={checked}
      onChange={(event) => onChange(event.currentTarget.checked)}
    />
  );
}

function NoProviders() {
  const t = useTexts(texts);
  return (
    <EmptyState icon={LogIn} title={t("noProviders")} hint={t("noProvidersHint")}>
      <Button
        variant="default"
        renderRoot={(props) => <Link to="/settings" search={{ tab: "providers" }} {...props} />}
      >
        {t("toSettings")}
      </Button>
    </EmptyState>
  );
}

function People({
  provider,
  chosen,
  onChoose,
}: {
  provider: string;
  chosen: ReadonlySet<string>;
  onChoose: (chosen: ReadonlySet<string>) => void;
}) {
  const t = useTexts(texts);
  const c = useTexts(common);
  const people = usePages("/auth/providers/{id}/people", { limit: 500 }, { id: provider });
  const ask = useAction<void, unknown>({
    run: () =>
      sent(
        api.GET("/auth/providers/{id}/people", {
          params: { path: { id: provider }, query: { refresh: true, limit: 1 } },
        }),
      ),
    touches: ["/auth/providers"],
  });
  function toggle(person: Person) {
    const next = new Set(chosen);
    if (!next.delete(person.subject)) next.add(person.subject);
    onChoose(next);
  }
  const free = people.items?.filter((person) => person.user === null) ?? [];
  return (
    <>
      <Group justify="space-between">
        <Title order={3}>{t("people")}</Title>
        <Button
          variant="default"
          leftSection={<RefreshCw size={14} />}
          loading={ask.isPending}
          onClick={() => ask.mutate()}
        >
          {t("askProvider")}
        </Button>
      </Group>
      {people.error !== null && <ProblemNote error={people.error} onRetry={people.retry} />}
      {people.items?.length === 0 && <EmptyState icon={UserPlus} title={t("noPeople")} hint={t("noPeopleHint")} />}
      {people.items !== undefined && people.items.length > 0 && (
        <Table aria-label={t("people")}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th w={36}>
                <Checkbox
                  size="xs"
                  aria-label={c("selectAll")}
                  disabled={free.length === 0}
                  checked={free.length > 0 && free.every((person) => chosen.has(person.subject))}
                  onChange={(event) =>
                    onChoose(new Set(event.currentTarget.checked ? free.map((person) => person.subject) : []))
                  }
                />
              </Table.Th>
              <Table.Th>{t("person")}</Table.Th>
              <Table.Th>{t("state")}</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {people.items.map((person) => (
              <Table.Tr key={person.subject}>
                <Table.Td>
                  <Checkbox
                    size="xs"
                    aria-label={c("selectRow", { name: person.login })}
                    disabled={person.user !== null}
                    checked={chosen.has(person.subject)}
                    onChange={() => toggle(person)}
                  />
                </Table.Td>
                <Table.Td>
                  {person.login}
                  <Faint>{[person.name, person.email].filter((text) => text !== "").join(" · ")}</Faint>
                </Table.Td>
                <Table.Td>
                  <Text size="sm" c="dimmed">
                    {person.user !== null ? t("already", { name: person.user }) : person.allowed ? t("allowedIn") : ""}
                  </Text>
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
      {people.hasMore && (
        <Button variant="default" loading={people.isLoadingMore} onClick={people.loadMore}>
          {c("loadMore")}
        </Button>
      )}
    </>
  );
}

async function onboardAll(
  { provider, subjects, group, permission_group, operators }: Wanted,
  partly: string,
): Promise<readonly Schema<"UserView">[]> {
  const made = await sent(
    api.POST("/users:onboard", {
      body: { provider, subjects: [...subjects], group: group === "" ? null : group, operators: [...operators] },
    }),
  );
  const others = made.items.filter((user) => user.permission_group !== permission_group).map((user) => user.name);
  if (others.length > 0) {
    await sent(
      api.POST("/permission-groups/{name}/users", {
        params: { path: { name: permission_group } },
        body: { users: others },
      }),
    ).catch((error: unknown) => {
      const detail = error instanceof Problem ? error.detail : "";
      throw new Problem(error instanceof Problem ? error.status : 0, partly, detail);
    });
  }
  return made.items;
}
