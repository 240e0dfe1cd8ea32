/** Add an image, or change one. Errors are shown while the user types. */
import { SegmentedControl, Select, Stack, TagsInput, Text, Textarea, TextInput } from "@mantine/core";
import { useForm, type FormErrors, type UseFormReturnType } from "@mantine/form";

import { api, sent } from "@/api/client";
import { ImageCreate } from "@/api/limits";
import { IMAGE_NAME } from "@/api/names";
import { useAll } from "@/api/useAll";
import { useIsOperator, useMe } from "@/app/session";
import { useWhyNot, type Image } from "@/pages/jobs/images/ImageList";
import { ADDRESS } from "@/pages/jobs/images/rules";
import { texts } from "@/pages/jobs/images/texts";
import { FormDrawer } from "@/parts/FormDrawer";
import { useFormAction } from "@/parts/useFormAction";
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
  const form = useForm<Fields>({
    initialValues: image === undefined ? NEW : fieldsOf(image),
    validateInputOnChange: true,
    validate: useErrors(image),
  });
  const save = useFormAction(form, {
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
      {...save}
      disabled={locked !== undefined}
    >
      {locked !== undefined && <Text size="sm">{locked}</Text>}
      <ImageFields form={form} image={image} />
    </FormDrawer>
  );
}

interface FieldsProps {
  readonly form: UseFormReturnType<Fields>;
  readonly image: Image | undefined;
}

function ImageFields({ form, image }: FieldsProps) {
  const t = useTexts(texts);
  const c = useTexts(common);
  return (
    <Stack gap="md">
      <TextInput
        label={c("name")}
        description={t("nameHint")}
        withAsterisk
        disabled={image !== undefined}
        data-autofocus={image === undefined || undefined}
        {...form.getInputProps("name")}
      />
      <TextInput
        label={t("address")}
        description={t("addressHint")}
        withAsterisk
        placeholder="registry.example.org/team/train:1.4"
        {...form.getInputProps("address")}
      />
      <VisibilityField form={form} image={image} />
      <Credential form={form} image={image} />
      <Textarea
        label={c("description")}
        autosize
        minRows={2}
        maxLength={ImageCreate.description.most}
        {...form.getInputProps("description")}
      />
    </Stack>
  );
}

function VisibilityField({ form, image }: FieldsProps) {
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
    if (visibility !== undefined) form.setValues({ visibility, shared_users: [], shared_groups: [], credential: null });
  }
  return (
    <div>
      <Text size="sm" fw={500} mb={4}>
        {t("visibility")}
      </Text>
      <SegmentedControl
        fullWidth
        aria-label={t("visibility")}
        value={form.values.visibility}
        onChange={choose}
        data={options}
      />
      <Text size="xs" c="dimmed" mt={4}>
        {!isOperator ? t("publicOnly") : image === undefined ? "" : t("publicFixed")}
      </Text>
      {form.values.visibility === "shared" && (
        <Stack gap="sm" mt="sm">
          <TagsInput
            label={t("sharedUsers")}
            description={t("sharedHint")}
            data={users}
            {...form.getInputProps("shared_users")}
          />
          <TagsInput
            label={t("sharedGroups")}
            data={groups}
            {...form.getInputProps("shared_groups")}
            onChange={(shared_groups) => {
              form.setFieldValue("shared_groups", shared_groups);
              // A group is enough.
              form.clearFieldError("shared_users");
            }}
          />
        </Stack>
      )}
    </div>
  );
}

function Credential({ form, image }: FieldsProps) {
  const t = useTexts(texts);
  const me = useMe();
  const logins = useAll("/registry-logins").data ?? [];
  // Logins of other users are not listed: the chosen one stays, or is removed.
  const isOwn = image === undefined || image.owner === me.name || image.owner === "";
  const fitting = isOwn
    ? logins.filter((login) => login.platform === (form.values.visibility === "public")).map((login) => login.name)
    : [];
  const { credential } = form.values;
  const names = credential === null || fitting.includes(credential) ? fitting : [...fitting, credential];
  if (names.length === 0) return null;
  return (
    <Select
      label={t("credential")}
      clearable
      placeholder={t("credentialAny")}
      data={names}
      {...form.getInputProps("credential")}
    />
  );
}

function useErrors(image: Image | undefined): (fields: Fields) => FormErrors {
  const t = useTexts(texts);
  const c = useTexts(common);
  const me = useMe();
  const images = useAll("/images").data ?? [];
  return (fields) => {
    const errors: FormErrors = {};
    const owner = fields.visibility === "public" ? "" : me.name;
    if (image === undefined) {
      if (fields.name === "") errors.name = c("required");
      else if (!IMAGE_NAME.test(fields.name)) errors.name = t("nameBad");
      else if (images.some((one) => one.name === fields.name && one.owner === owner)) errors.name = t("nameTaken");
    }
    if (fields.address.trim() === "") errors.address = c("required");
    else if (!ADDRESS.test(fields.address.trim())) errors.address = t("addressBad");
    if (fields.visibility === "shared" && fields.shared_users.length + fields.shared_groups.length === 0)
      errors.shared_users = t("sharedMissing");
    return errors;
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
