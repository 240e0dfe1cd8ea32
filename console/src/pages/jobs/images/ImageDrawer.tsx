/** Add an image, or change one. Errors are shown while the user types. */
import { SegmentedControl, Select, Stack, TagsInput, Text, Textarea, TextInput } from "@mantine/core";

import { api, sent } from "@/api/client";
import { IMAGE_NAME } from "@/api/names";
import { useAll } from "@/api/useAll";
import { useIsOperator, useMe } from "@/app/session";
import { useWhyNot, type Image } from "@/pages/jobs/images/ImageList";
import { ADDRESS } from "@/pages/jobs/images/rules";
import { texts } from "@/pages/jobs/images/texts";
import { FormDrawer } from "@/parts/FormDrawer";
import { useFields, type Wrong, type Wrongs } from "@/parts/useFields";
import { common } from "@/texts/common";
import { useTexts } from "@/texts/texts";

type Fields = Pick<
  Image,
  "name" | "address" | "visibility" | "shared_users" | "shared_groups" | "credential" | "description"
>;
const NEW: Fields = {
  name: "",
  address: "",
  visibility: "private",
  shared_users: [],
  shared_groups: [],
  credential: null,
  description: "",
};

export function ImageDrawer({
  image,
  opened,
  onClose,
}: {
  image: Image | undefined;
  opened: boolean;
  onClose: () => void;
}) {
  const t = useTexts(texts);
  const whyNot = useWhyNot();
  const locked = image === undefined ? undefined : whyNot(image);
  const form = useFields<Fields, Image>({
    start: () => (image === undefined ? NEW : fieldsOf(image)),
    wrong: useWrong(image),
    run: (asked) => (image === undefined ? create(asked) : change(image, asked)),
    touches: ["/images"],
    done: ({ name }) => t(image === undefined ? "added" : "saved", { name }),
    onDone: onClose,
  });
  return (
    <FormDrawer
      opened={opened}
      title={image === undefined ? t("addTitle") : t("editTitle", { name: image.name })}
      onClose={onClose}
      onSubmit={form.submit}
      busy={form.busy}
      disabled={locked !== undefined}
      problem={form.problem}
    >
      {locked !== undefined && <Text size="sm">{locked}</Text>}
      <ImageFields fields={form.fields} set={form.set} errorOf={form.errorOf} image={image} />
    </FormDrawer>
  );
}

interface FieldsProps {
  readonly fields: Fields;
  readonly set: (change: Partial<Fields>) => void;
  readonly errorOf: (field: string) => string | undefined;
  readonly image: Image | undefined;
}

function ImageFields({ fields, set, errorOf, image }: FieldsProps) {
  const t = useTexts(texts);
  const c = useTexts(common);
  return (
    <Stack gap="md">
      <TextInput
        label={c("name")}
        description={t("nameHint")}
        withAsterisk
        disabled={image !== undefined}
        value={fields.name}
        error={errorOf("name")}
        onChange={(event) => set({ name: event.currentTarget.value })}
        data-autofocus={image === undefined || undefined}
      />
      <TextInput
        label={t("address")}
        description={t("addressHint")}
        withAsterisk
        placeholder="registry.example.org/team/train:1.4"
        value={fields.address}
        error={errorOf("address")}
        onChange={(event) => set({ address: event.currentTarget.value })}
      />
      <VisibilityField fields={fields} set={set} errorOf={errorOf} image={image} />
      <Credential fields={fields} set={set} errorOf={errorOf} image={image} />
      <Textarea
        label={c("description")}
        autosize
        minRows={2}
        maxLength={1000}
        value={fields.description}
        error={errorOf("description")}
        onChange={(event) => set({ description: event.currentTarget.value })}
      />
    </Stack>
  );
}

function VisibilityField({ fields, set, errorOf, image }: FieldsProps) {
  const t = useTexts(texts);
  const isOperator = useIsOperator();
  const wasPublic = image?.visibility === "public";
  const users = useAll("/users", {}, isOperator).data?.map((user) => user.name) ?? [];
  const groups = useAll("/groups", {}, isOperator).data?.map((group) => group.name) ?? [];
  const options = [
    { value: "private", label: t("private"), disabled: wasPublic },
    { value: "shared", label: t("shared"), disabled: wasPublic },
    { value: "public", label: t("public"), disabled: !isOperator || (image !== undefined && !wasPublic) },
  ];
  function choose(chosen: string) {
    const visibility = (["private", "shared", "public"] as const).find((one) => one === chosen);
    if (visibility !== undefined) set({ visibility, shared_users: [], shared_groups: [], credential: null });
  }
  return (
    <div>
      <Text size="sm" fw={500} mb={4}>
        {t("visibility")}
      </Text>
      <SegmentedControl
        fullWidth
        aria-label={t("visibility")}
        value={fields.visibility}
        onChange={choose}
        data={options}
      />
      <Text size="xs" c="dimmed" mt={4}>
        {!isOperator ? t("publicOnly") : image === undefined ? "" : t("publicFixed")}
      </Text>
      {fields.visibility === "shared" && (
        <Stack gap="sm" mt="sm">
          <TagsInput
            label={t("sharedUsers")}
            description={t("sharedHint")}
            data={users}
            value={fields.shared_users}
            onChange={(shared_users) => set({ shared_users })}
            error={errorOf("shared_users")}
          />
          <TagsInput
            label={t("sharedGroups")}
            data={groups}
            value={fields.shared_groups}
            onChange={(shared_groups) => set({ shared_groups })}
            error={errorOf("shared_groups")}
          />
        </Stack>
      )}
    </div>
  );
}

function Credential({ fields, set, errorOf, image }: FieldsProps) {
  const t = useTexts(texts);
  const me = useMe();
  const logins = useAll("/registry-logins").data ?? [];
  // Logins of other users are not listed: the chosen one stays, or is removed.
  const isOwn = image === undefined || image.owner === me.name || image.owner === "";
  const fitting = isOwn
    ? logins.filter((login) => login.platform === (fields.visibility === "public")).map((login) => login.name)
    : [];
  const names =
    fields.credential === null || fitting.includes(fields.credential) ? fitting : [...fitting, fields.credential];
  if (names.length === 0) return null;
  return (
    <Select
      label={t("credential")}
      clearable
      placeholder={t("credentialAny")}
      data={names}
      value={fields.credential}
      onChange={(credential) => set({ credential })}
      error={errorOf("credential")}
    />
  );
}

function useWrong(image: Image | undefined): (fields: Fields) => Wrongs {
  const t = useTexts(texts);
  const me = useMe();
  const images = useAll("/images").data ?? [];
  return (fields) => {
    const wrong: Record<string, Wrong> = {};
    const owner = fields.visibility === "public" ? "" : me.name;
    if (image === undefined) {
      if (fields.name === "") wrong.name = { text: t("needed"), isMissing: true };
      else if (!IMAGE_NAME.test(fields.name)) wrong.name = { text: t("nameBad") };
      else if (images.some((one) => one.name === fields.name && one.owner === owner))
        wrong.name = { text: t("nameTaken") };
    }
    if (fields.address.trim() === "") wrong.address = { text: t("needed"), isMissing: true };
    else if (!ADDRESS.test(fields.address.trim())) wrong.address = { text: t("addressBad") };
    if (fields.visibility === "shared" && fields.shared_users.length + fields.shared_groups.length === 0)
      wrong.shared_users = { text: t("sharedNobody"), isMissing: true };
    return wrong;
  };
}

function fieldsOf({ name, address, visibility, shared_users, shared_groups, credential, description }: Image): Fields {
  return { name, address, visibility, shared_users, shared_groups, credential, description };
}

function create(fields: Fields): Promise<Image> {
  return sent(api.POST("/images", { body: { ...fields, address: fields.address.trim() } }));
}

function change(
  { name, owner }: Image,
  { address, visibility, shared_users, shared_groups, credential, description }: Fields,
): Promise<Image> {
  const body = { address: address.trim(), visibility, shared_users, shared_groups, credential, description };
  return sent(api.PATCH("/images/{image}", { params: { path: { image: name }, query: { owner } }, body }));
}
