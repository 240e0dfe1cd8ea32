/** Draws the map on a canvas, and afterwards only what has changed. */
import { LABEL_HEIGHT, type Block, type Box, type Layout } from "@/pages/fleet/overview/map/layout";
import { changedPlaces, type Look } from "@/pages/fleet/overview/map/looks";

export interface Ink {
  readonly text: string;
  readonly warning: string;
  readonly cross: string;
}

const FONT = '11px "Inter Variable", system-ui, sans-serif';
const RADIUS = 3;
const SIGNS: Readonly<Record<string, string>> = { cordoned: "⊘ ", draining: "↧ ", drained: "↧ ", down: "✕ " };

export class Painter {
  private layout: Layout | undefined;
  private ink: Ink | undefined;
  private density = 0;
  private looks: readonly Look[] = [];

  constructor(private readonly canvas: HTMLCanvasElement) {}

  /** Returns how many GPUs were drawn. */
  paint(layout: Layout, looks: readonly Look[], ink: Ink, density: number): number {
    const context = this.canvas.getContext("2d");
    if (context === null) return 0;
    const isNew = layout !== this.layout || ink !== this.ink || density !== this.density;
    if (isNew) this.prepare(context, layout, ink, density);
    const places = isNew ? looks.map((_, place) => place) : changedPlaces(this.looks, looks);
    for (const place of places) {
      const [cell, look] = [layout.cells[place], looks[place]];
      if (cell !== undefined && look !== undefined) drawCell(context, cell, look, ink);
    }
    this.layout = layout;
    this.ink = ink;
    this.density = density;
    this.looks = looks;
    return places.length;
  }

  private prepare(context: CanvasRenderingContext2D, layout: Layout, ink: Ink, density: number): void {
    this.canvas.width = Math.round(layout.width * density);
    this.canvas.height = Math.round(layout.height * density);
    context.setTransform(density, 0, 0, density, 0, 0);
    context.font = FONT;
    context.textBaseline = "middle";
    for (const block of layout.blocks) drawLabel(context, block, ink);
  }
}

function drawLabel(context: CanvasRenderingContext2D, block: Block, ink: Ink): void {
  const sign = SIGNS[block.run.state] ?? "";
  context.fillStyle = sign === "" ? ink.text : ink.warning;
  context.fillText(fitted(context, sign, block.run.node, block.width), block.x, block.y + LABEL_HEIGHT / 2 - 1);
}

/** The end of a name distinguishes nodes, so the beginning is cut. */
function fitted(context: CanvasRenderingContext2D, sign: string, name: string, width: number): string {
  if (context.measureText(sign + name).width <= width) return sign + name;
  for (let at = 1; at < name.length; at += 1) {
    const text = `${sign}…${name.slice(at)}`;
    if (context.measureText(text).width <= width) return text;
  }
  return sign;
}

function drawCell(context: CanvasRenderingContext2D, cell: Box, look: Look, ink: Ink): void {
  context.clearRect(cell.x - 1, cell.y - 1, cell.width + 2, cell.height + 2);
  context.globalAlpha = look.faded ? 0.5 : 1;
  if (look.fill !== null) {
    context.fillStyle = look.fill;
    context.beginPath();
    context.roundRect(cell.x, cell.y, cell.width, cell.height, RADIUS);
    context.fill();
  }
  if (look.mark === "hatch") drawHatch(context, cell, look.edge ?? ink.warning);
  if (look.edge !== null) drawEdge(context, cell, look.edge, look.mark);
  if (look.mark === "cross") drawCross(context, cell, ink.cross);
  context.globalAlpha = 1;
}

function drawEdge(context: CanvasRenderingContext2D, cell: Box, color: string, mark: Look["mark"]): void {
  const inset = mark === "hatch" ? 1 : 0.75;
  context.strokeStyle = color;
  context.lineWidth = 2 * inset;
  context.setLineDash(mark === "dashes" ? [3, 3] : []);
  context.beginPath();
  context.roundRect(cell.x + inset, cell.y + inset, cell.width - 2 * inset, cell.height - 2 * inset, RADIUS);
  context.stroke();
  context.setLineDash([]);
}

function drawHatch(context: CanvasRenderingContext2D, cell: Box, color: string): void {
  context.save();
  context.beginPath();
  context.roundRect(cell.x, cell.y, cell.width, cell.height, RADIUS);
  context.clip();
  context.strokeStyle = color;
  context.lineWidth = 2;
  context.beginPath();
  for (let x = cell.x - cell.height; x < cell.x + cell.width; x += 6) {
    context.moveTo(x, cell.y + cell.height);
    context.lineTo(x + cell.height, cell.y);
  }
  context.stroke();
  context.restore();
}

function drawCross(context: CanvasRenderingContext2D, cell: Box, color: string): void {
  const reach = Math.min(cell.width, cell.height) / 2 - 3;
  const [x, y] = [cell.x + cell.width / 2, cell.y + cell.height / 2];
  context.strokeStyle = color;
  context.lineWidth = 1.75;
  context.beginPath();
  context.moveTo(x - reach, y - reach);
  context.lineTo(x + reach, y + reach);
  context.moveTo(x + reach, y - reach);
  context.lineTo(x - reach, y + reach);
  context.stroke();
}
