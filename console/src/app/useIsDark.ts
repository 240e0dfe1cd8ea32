import { useComputedColorScheme } from "@mantine/core";

/** Whether the dark scheme is shown, from the first drawing on: nothing is rendered on a server here. */
export function useIsDark(): boolean {
  return useComputedColorScheme("light", { getInitialValueInEffect: false }) === "dark";
}
