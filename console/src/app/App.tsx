import { MantineProvider } from "@mantine/core";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { CatchBoundary, RouterProvider } from "@tanstack/react-router";

import { onSignedOut } from "@/api/client";
import { problemOf } from "@/api/problem";
import { Overlays } from "@/app/Overlays";
import { PreferencesProvider } from "@/app/preferences";
import { router } from "@/app/router";
import { PageError } from "@/app/shell/fallbacks";
import { theme } from "@/app/theme";

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      // Events arrive by the stream; a query is repeated only when an event concerns it.
      staleTime: 30_000,
      refetchOnWindowFocus: false,
      retry: (count, error) => problemOf(error).isOutage && count < 3,
    },
  },
});
onSignedOut(() => {
  if (queries.getQueryData(["get", "/me", {}]) !== undefined) void queries.resetQueries({ queryKey: ["get", "/me"] });
});

export function App() {
  return (
    <PreferencesProvider>
      <MantineProvider theme={theme} defaultColorScheme="auto">
        <QueryClientProvider client={queries}>
          <CatchBoundary getResetKey={() => "console"} errorComponent={PageError}>
            <Overlays />
            <RouterProvider router={router} />
          </CatchBoundary>
        </QueryClientProvider>
      </MantineProvider>
    </PreferencesProvider>
  );
}
