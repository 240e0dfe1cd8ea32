import { renderToStaticMarkup } from "react-dom/server";
import { describe, expect, it } from "vitest";

import { Sparkline } from "@/charts/Sparkline";

const percent = (value: number) => `${value * 100}%`;

describe("Sparkline", () => {
  it("says its scale, which does not follow the values", () => {
    const drawn = renderToStaticMarkup(
      <Sparkline label="Utilisation" values={[0.4, 0.41]} usualTop={1} format={percent} />,
    );
    expect(drawn).toContain('role="img" aria-label="Utilisation, on a scale from 0% to 100%"');
  });
});
