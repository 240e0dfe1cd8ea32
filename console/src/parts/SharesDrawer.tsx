import { Text } from "@mantine/core";
import { useForm } from "@mantine/form";

import { FormDrawer } from "@/parts/FormDrawer";
import { SharesField, useShareErrors, type Share } from "@/parts/SharesField";
import { useFormAction } from "@/parts/useFormAction";

interface SharesDrawerProps<Output> {
  readonly title: string;
  readonly hint: string;
  readonly shares: readonly Share[];
  readonly save: (shares: Share[]) => Promise<Output>;
  readonly touches: readonly string[];
  readonly done: string;
  readonly onClose: () => void;
}

/** Edits the list of users and groups that something is shared with; the whole list is saved at once. */
export function SharesDrawer<Output>({ title, hint, shares, save, touches, done, onClose }: SharesDrawerProps<Output>) {
  const shareErrors = useShareErrors();
  const form = useForm<{ shares: readonly Share[] }>({
    initialValues: { shares },
    validate: (values) => shareErrors(values.shares),
  });
  const action = useFormAction(form, {
    run: (values) => save(values.shares.map((share) => ({ ...share, name: share.name.trim() }))),
    touches,
    done: () => done,
    onDone: onClose,
  });
  return (
    <FormDrawer opened title={title} onClose={onClose} {...action}>
      <Text size="sm" c="dimmed">
        {hint}
      </Text>
      <SharesField
        shares={form.values.shares}
        onChange={(changed) => {
          form.setFieldValue("shares", changed);
          form.clearErrors();
        }}
        errorOf={(at) => form.errors[`shares.${at}`]}
      />
    </FormDrawer>
  );
}
