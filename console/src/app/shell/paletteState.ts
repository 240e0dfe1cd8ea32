import { createSpotlight } from "@mantine/spotlight";

/** Whether the palette is open, apart from what draws it, which is loaded when it is opened. */
export const [paletteStore, palette] = createSpotlight();
