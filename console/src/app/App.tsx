import { MantineProvider } from "@mantine/core";
import { ModalsProvider } from "@mantine/modals";
import { Notifications } from "@mantine/notifications";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";

import { onSignedOut } from "@/api/client";
import { problemOf } from "@/api/problem";
import { PreferencesProvider } from "@/app/preferences";
import { router } from "@/app/router";
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
          <ModalsProvider>
            <Notifications position="bottom-right" limit={4} />
            <RouterProvider router={router} />
          </ModalsProvider>
        </QueryClientProvider>
      </MantineProvider>
    </PreferencesProvider>
  );
}
