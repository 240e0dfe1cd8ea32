import { createTheme, type MantineColorsTuple } from "@mantine/core";

/** Deep blue greys, from text to the page's ground. */
const dark: MantineColorsTuple = [
  "#d5dae5",
  "#b4bccb",
  "#98a2b5",
  "#6b768c",
  "#3c475c",
  "#2b3547",
  "#1e2737",
  "#151c29",
  "#0f1521",
  "#0a0f18",
];

// The head of a dialog is no second banner of the page.
const attributes = { header: { role: "none" } };

export const theme = createTheme({
  primaryColor: "blue",
  // Dark enough for white text on it, in both schemes.
  primaryShade: 8,
  colors: { dark },
  fontFamily: '"Inter Variable", Inter, system-ui, "Noto Sans SC", "PingFang SC", "Microsoft YaHei", sans-serif',
  fontFamilyMonospace: 'ui-monospace, "JetBrains Mono", "SFMono-Regular", Menlo, Consolas, monospace',
  defaultRadius: "md",
  cursorType: "pointer",
  headings: {
    fontWeight: "600",
    sizes: { h1: { fontSize: "1.35rem" }, h2: { fontSize: "1.05rem" }, h3: { fontSize: "0.95rem" } },
  },
  fontSizes: { xs: "0.75rem", sm: "0.8125rem", md: "0.875rem", lg: "1rem", xl: "1.125rem" },
  components: {
    Button: { defaultProps: { size: "xs" } },
    TextInput: { defaultProps: { size: "sm" } },
    Tooltip: { defaultProps: { withArrow: true, openDelay: 250, multiline: true, maw: 360 } },
    Drawer: { defaultProps: { position: "right", size: "md", padding: "lg", attributes } },
    // Its placeholder for the focus is something that a menu may not contain.
    Menu: { defaultProps: { withInitialFocusPlaceholder: false } },
    // Browsers leave two pixels beside it, which puts its border out of line with everything else.
    Fieldset: { defaultProps: { mx: 0 } },
    Modal: { defaultProps: { centered: true, attributes } },
  },
});
