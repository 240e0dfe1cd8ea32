import { useQuery, type UseQueryResult } from "@tanstack/react-query";

import { api, sent } from "@/api/client";
import { joined, type GpuMap } from "@/api/gpuMap";
import type { Problem } from "@/api/problem";

/** All GPUs. Pages of a large fleet are fetched one after the other, each smaller than a megabyte. */
export function useGpuMap(): UseQueryResult<GpuMap, Problem> {
  return useQuery<GpuMap, Problem>({
    // The same shape as the other hooks' keys, so that events of the stream find it by its path.
    queryKey: ["get", "/gpus/map", {}],
    queryFn: async () => {
      const pages: GpuMap[] = [];
      for (let cursor: string | undefined, isLast = false; !isLast;) {
        const page: GpuMap = await sent(api.GET("/gpus/map", { params: { query: { cursor } } }));
        pages.push(page);
        cursor = page.next_cursor ?? undefined;
        isLast = cursor === undefined;
      }
      const whole = joined(pages);
      if (whole === undefined) throw new Error("the map has no page");
      return whole;
    },
    // A new answer is new throughout; comparing it with the one before would cost more than drawing it.
    structuralSharing: false,
  });
}
