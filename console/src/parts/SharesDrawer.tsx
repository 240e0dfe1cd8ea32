import { Text } from "@mantine/core";

import { FormDrawer } from "@/parts/FormDrawer";
import { SharesField, useWrongShares, type Share } from "@/parts/SharesField";
import { useFields } from "@/parts/useFields";

interface SharesDrawerProps<Output> {
  readonly title: string;
  readonly hint: string;
  readonly shares: readonly Share[];
  readonly save: (shares: Share[]) => Promise<Output>;
  readonly touches: readonly string[];
  readonly done: string;
  readonly onClose: () => void;
}

/** Who else uses something; all of them are saved together. */
export function SharesDrawer<Output>({ title, hint, shares, save, touches, done, onClose }: SharesDrawerProps<Output>) {
  const wrongShares = useWrongShares();
  const form = useFields<{ shares: readonly Share[] }, Output>({
    start: () => ({ shares }),
    wrong: (fields) =>
      Object.fromEntries([...wrongShares(fields.shares)].map(([at, wrong]) => [`shares.${at}`, wrong])),
    run: (fields) => save(fields.shares.map((share) => ({ ...share, name: share.name.trim() }))),
    touches,
    done: () => done,
    onDone: onClose,
  });
  return (
    <FormDrawer opened title={title} onClose={onClose} onSubmit={form.submit} busy={form.busy} problem={form.problem}>
      <Text size="sm" c="dimmed">
        {hint}
      </Text>
      <SharesField
        shares={form.fields.shares}
        onChange={(changed) => form.set({ shares: changed })}
        errorOf={(at) => form.errorOf(`shares.${at}`)}
      />
    </FormDrawer>
  );
}
