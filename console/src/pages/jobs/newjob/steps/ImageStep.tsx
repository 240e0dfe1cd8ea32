import { Anchor, Radio, Select, Stack, Text, TextInput } from "@mantine/core";
import { Link } from "@tanstack/react-router";

import { useAll } from "@/api/useAll";
import { useMe } from "@/app/session";
import { useField, useForm } from "@/pages/jobs/newjob/form";
import { OptionCard } from "@/parts/OptionCard";
import { texts } from "@/pages/jobs/newjob/texts";
import { ProblemNote } from "@/parts/ProblemNote";
import { useTexts } from "@/texts/texts";

/** The user's own images, the public ones, and shared ones with their owner's name. */
export function useImageOptions() {
  const me = useMe();
  const t = useTexts(texts);
  const images = useAll("/images");
  const options = images.data?.map((image) => {
    const value = image.owner === "" || image.owner === me.name ? image.name : `${image.owner}/${image.name}`;
    return { value, label: `${value}${image.owner === "" ? ` (${t("public")})` : ""} · ${image.address}` };
  });
  // A public one and one's own may share a name: then the name means one's own.
  const once = options?.filter((one, at) => options.findIndex((other) => other.value === one.value) === at);
  return { options: once, error: images.error, retry: () => void images.refetch() };
}

export function ImageStep() {
  const t = useTexts(texts);
  const { draft, set, problem } = useForm();
  const field = useField();
  const { options, error, retry } = useImageOptions();
  const hasNone = options?.length === 0;
  function choose(from: string) {
    if (from === "node" || from === "list" || from === "address") set({ imageFrom: from, image: "" });
  }
  return (
    <Stack gap="md">
      <Radio.Group
        label={t("imageQuestion")}
        labelProps={{ className: "visually-hidden" }}
        value={draft.imageFrom}
        onChange={choose}
      >
        <Stack gap="sm">
          <OptionCard value="node" title={t("imageNode")}>
            <About text={t("imageNodeIs")} />
          </OptionCard>
          <OptionCard value="list" title={t("imageList")} disabled={hasNone}>
            <About text={hasNone ? t("imageListEmpty") : t("imageListIs")} />
          </OptionCard>
          <OptionCard value="address" title={t("imageAddress")}>
            <About text={t("imageAddressIs")} />
          </OptionCard>
        </Stack>
      </Radio.Group>
      {error !== null && <ProblemNote error={error} onRetry={retry} />}
      {draft.imageFrom === "list" && (
        <Select
          label={t("imageLabel")}
          searchable
          data={options ?? []}
          value={draft.image || null}
          onChange={(image) => set({ image: image ?? "" })}
          error={problem("image")}
          withAsterisk
        />
      )}
      {draft.imageFrom === "address" && (
        <TextInput
          label={t("addressLabel")}
          placeholder="registry.example.org/team/train:1.4"
          {...field("image")}
          withAsterisk
        />
      )}
      <Anchor size="sm" renderRoot={(props) => <Link to="/images" {...props} />}>
        {t("manageImages")}
      </Anchor>
    </Stack>
  );
}

function About({ text }: { text: string }) {
  return (
    <Text size="sm" c="dimmed">
      {text}
    </Text>
  );
}
