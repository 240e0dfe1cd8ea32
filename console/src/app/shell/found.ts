/** Where each kind of thing that a search finds has its page. */
import {
  BellRing,
  Boxes,
  CircuitBoard,
  Container,
  FileText,
  HardDrive,
  Layers,
  NotebookPen,
  Package,
  Server,
  SlidersHorizontal,
  Users,
  UsersRound,
  Waypoints,
  type LucideIcon,
} from "lucide-react";

import type { Schema } from "@/api/client";

type Kind = Schema<"SearchView">["items"][number]["type"];

const part = encodeURIComponent;

export const FOUND: Readonly<Record<Kind, { readonly icon: LucideIcon; readonly address: (id: string) => string }>> = {
  job: { icon: Boxes, address: (id) => `/jobs/${part(id)}` },
  workbench: { icon: NotebookPen, address: (id) => `/jobs/${part(id)}` },
  user: { icon: Users, address: (id) => `/users?open=${part(id)}` },
  node: { icon: Server, address: (id) => `/nodes/${part(id)}` },
  gpu: { icon: CircuitBoard, address: (id) => `/gpus/${id}` },
  queue: { icon: Waypoints, address: (id) => `/queue?queue=${part(id)}` },
  pool: { icon: Layers, address: (id) => `/pools?open=${part(id)}` },
  group: { icon: UsersRound, address: (id) => `/groups?open=${part(id)}` },
  package: { icon: Package, address: (id) => `/packages?open=${part(id)}` },
  flavor: { icon: SlidersHorizontal, address: (id) => `/flavors?open=${part(id)}` },
  volume: { icon: HardDrive, address: (id) => `/volumes/${part(id)}` },
  image: { icon: Container, address: (id) => `/images?open=${part(id)}` },
  "alert-rule": { icon: BellRing, address: (id) => `/alerts?tab=rules&open=${part(id)}` },
  report: { icon: FileText, address: (id) => `/reports?open=${part(id)}` },
};
