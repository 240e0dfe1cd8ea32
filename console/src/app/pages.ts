/**
 * Every page of the console: a file with a default export, and one line here. The line gives its address, its place in the
 * navigation (none without a section), and who may see it. Pages are loaded when they are first opened.
 */
import {
  BadgeCheck,
  BellRing,
  Boxes,
  ChartNoAxesCombined,
  CircuitBoard,
  FileText,
  Gauge,
  Layers,
  ListOrdered,
  NotebookPen,
  Package,
  ScrollText,
  Server,
  Settings,
  ShieldCheck,
  SlidersHorizontal,
  Container,
  Users,
  UsersRound,
  Wallet,
  Waypoints,
  type LucideIcon,
} from "lucide-react";
import type { ComponentType } from "react";

import type { NavigationWord } from "@/words/navigation";

export type Section = "work" | "storage" | "fleet" | "people" | "catalog" | "insight" | "account";

export interface Page {
  readonly path: string;
  readonly name: NavigationWord;
  readonly icon: LucideIcon;
  readonly section?: Section;
  readonly audience: "everyone" | "operator";
  readonly load: () => Promise<{ default: ComponentType }>;
}

/** In this order in the navigation. Volumes and datasets go to `storage`, what-if to `insight`. */
export const SECTIONS: readonly Section[] = ["work", "storage", "fleet", "people", "catalog", "insight", "account"];

export const PAGES: readonly Page[] = [
  { path: "/", name: "overview", icon: Gauge, section: "work", audience: "everyone", load: () => import("@/pages/overview/OverviewPage") },
  { path: "/jobs", name: "jobs", icon: Boxes, section: "work", audience: "everyone", load: () => import("@/pages/jobs/JobsPage") },
  { path: "/jobs/new", name: "newJob", icon: Boxes, audience: "everyone", load: () => import("@/pages/newjob/NewJobPage") },
  { path: "/jobs/$job", name: "job", icon: Boxes, audience: "everyone", load: () => import("@/pages/jobs/JobPage") },
  { path: "/workbenches", name: "workbenches", icon: NotebookPen, section: "work", audience: "everyone", load: () => import("@/pages/workbenches/WorkbenchesPage") },
  { path: "/queue", name: "queue", icon: ListOrdered, section: "work", audience: "everyone", load: () => import("@/pages/queue/QueuePage") },
  { path: "/images", name: "images", icon: Container, section: "storage", audience: "everyone", load: () => import("@/pages/images/ImagesPage") },
  { path: "/nodes", name: "nodes", icon: Server, section: "fleet", audience: "operator", load: () => import("@/pages/nodes/NodesPage") },
  { path: "/nodes/$node", name: "node", icon: Server, audience: "operator", load: () => import("@/pages/nodes/NodePage") },
  { path: "/gpus", name: "gpus", icon: CircuitBoard, section: "fleet", audience: "operator", load: () => import("@/pages/gpus/GpusPage") },
  { path: "/gpus/$", name: "gpu", icon: CircuitBoard, audience: "everyone", load: () => import("@/pages/gpus/GpuPage") },
  { path: "/pools", name: "pools", icon: Layers, section: "fleet", audience: "operator", load: () => import("@/pages/pools/PoolsPage") },
  { path: "/users", name: "users", icon: Users, section: "people", audience: "operator", load: () => import("@/pages/users/UsersPage") },
  { path: "/groups", name: "groups", icon: UsersRound, section: "people", audience: "operator", load: () => import("@/pages/groups/GroupsPage") },
  { path: "/permission-groups", name: "permissionGroups", icon: ShieldCheck, section: "people", audience: "operator", load: () => import("@/pages/permissions/PermissionGroupsPage") },
  { path: "/quotas", name: "quotas", icon: Wallet, section: "people", audience: "operator", load: () => import("@/pages/quotas/QuotasPage") },
  { path: "/packages", name: "packages", icon: Package, section: "catalog", audience: "operator", load: () => import("@/pages/packages/PackagesPage") },
  { path: "/flavors", name: "flavors", icon: SlidersHorizontal, section: "catalog", audience: "operator", load: () => import("@/pages/flavors/FlavorsPage") },
  { path: "/queues", name: "queues", icon: Waypoints, section: "catalog", audience: "operator", load: () => import("@/pages/queues/QueuesPage") },
  { path: "/presets", name: "presets", icon: BadgeCheck, section: "catalog", audience: "everyone", load: () => import("@/pages/presets/PresetsPage") },
  { path: "/alerts", name: "alerts", icon: BellRing, section: "insight", audience: "operator", load: () => import("@/pages/alerts/AlertsPage") },
  { path: "/analysis", name: "analysis", icon: ChartNoAxesCombined, section: "insight", audience: "operator", load: () => import("@/pages/analysis/AnalysisPage") },
  { path: "/reports", name: "reports", icon: FileText, section: "insight", audience: "operator", load: () => import("@/pages/reports/ReportsPage") },
  { path: "/audit", name: "audit", icon: ScrollText, section: "insight", audience: "operator", load: () => import("@/pages/audit/AuditPage") },
  { path: "/settings", name: "settings", icon: Settings, section: "account", audience: "everyone", load: () => import("@/pages/settings/SettingsPage") },
];
