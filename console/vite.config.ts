import { fileURLToPath } from "node:url";

import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

const server = process.env.CORRAL_SERVER ?? "http://127.0.0.1:8470";

// The server finds the built console beside its own code, so that a wheel carries both.
export default defineConfig({
  plugins: [react()],
  resolve: { alias: { "@": fileURLToPath(new URL("./src", import.meta.url)) } },
  build: {
    outDir: process.env.CORRAL_CONSOLE_OUT ?? "../src/corral/server/console",
    emptyOutDir: true,
    target: "es2022",
    sourcemap: false,
    // No file becomes a data: URL: the content policy allows scripts and styles of our own address only.
    assetsInlineLimit: 0,
    manifest: true,
    // One file of all that every page begins with: it compresses better than fifty.
    rolldownOptions: { output: { codeSplitting: { groups: [{ name: "base", tags: ["$initial"] }] } } },
  },
  server: {
    port: 5173,
    // While developing: pages from here, everything else from a running corral.
    proxy: {
      "/api": { target: server },
      "^/workbenches/[^/]+/jupyter": { target: server, ws: true },
    },
  },
  test: { environment: "node", include: ["src/**/*.test.ts", "src/**/*.test.tsx"] },
});
