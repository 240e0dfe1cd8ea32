/** The choices that this server offers: ordering and placement policies, and functions of permission groups. */
import { $api, type Schema } from "@/api/client";

export type Options = Schema<"OptionsView">;
export type OrderingPolicy = Schema<"OrderingPolicyView">;

/** While the options are loaded. */
const NONE: Options = { ordering_policies: [], placement_policies: [], functions: [] };

export function useOptions(): Options {
  // They change with the server's version only.
  return $api.useQuery("get", "/options", {}, { staleTime: Infinity }).data ?? NONE;
}

export function useOrderingPolicy(name: string | undefined): OrderingPolicy | undefined {
  return useOptions().ordering_policies.find((policy) => policy.name === name);
}
