/**
 * Every page of the console: a file with a default export, and one line here. The line gives its address, its place in the
 * navigation (none without a section), and who may see it. Pages are loaded when they are first opened.
 */
import {
  Activity,
  BadgeCheck,
  BellRing,
  Boxes,
  CalendarRange,
  ChartNoAxesCombined,
  CircuitBoard,
  Database,
  FileText,
  FlaskConical,
  Gauge,
  HandCoins,
  HardDrive,
  Inbox,
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
  Wrench,
  type LucideIcon,
} from "lucide-react";
import type { ComponentType } from "react";

import type { NavigationText } from "@/texts/navigation";

export type Section = "work" | "storage" | "fleet" | "people" | "catalog" | "insight" | "account";

export interface Page {
  readonly path: string;
  readonly name: NavigationText;
  readonly icon: LucideIcon;
  readonly section?: Section;
  readonly audience: "everyone" | "operator";
  readonly load: () => Promise<{ default: ComponentType }>;
}

/** In this order in the navigation: the pages of the first and the last one stand there, those of the others inside them. */
export const SECTIONS: readonly Section[] = ["work", "storage", "fleet", "people", "catalog", "insight", "account"];

const everyone = pageFor("everyone");
const operator = pageFor("operator");

/** Reached from other pages only. */
const hidden = undefined;

export const PAGES: readonly Page[] = [
  everyone("/", "overview", Gauge, "work", () => import("@/pages/fleet/overview/OverviewPage")),
  everyone("/jobs", "jobs", Boxes, "work", () => import("@/pages/jobs/JobsPage")),
  everyone("/jobs/new", "newJob", Boxes, hidden, () => import("@/pages/jobs/newjob/NewJobPage")),
  everyone("/jobs/compare", "compare", Boxes, hidden, () => import("@/pages/jobs/compare/ComparePage")),
  everyone("/jobs/$job", "job", Boxes, hidden, () => import("@/pages/jobs/JobPage")),
  everyone("/inbox", "inbox", Inbox, "work", () => import("@/pages/people/inbox/InboxPage")),
  everyone("/workbenches", "workbenches", NotebookPen, "work", () => import("@/pages/workbenches/WorkbenchesPage")),
  everyone("/queue", "queue", ListOrdered, "work", () => import("@/pages/scheduling/queue/QueuePage")),
  everyone("/volumes", "volumes", HardDrive, "storage", () => import("@/pages/storage/volumes/VolumesPage")),
  everyone("/volumes/$volume", "volume", HardDrive, hidden, () => import("@/pages/storage/volumes/VolumePage")),
  everyone("/datasets", "datasets", Database, "storage", () => import("@/pages/datasets/DatasetsPage")),
  everyone("/datasets/$dataset", "dataset", Database, hidden, () => import("@/pages/datasets/DatasetPage")),
  everyone("/images", "images", Container, "storage", () => import("@/pages/jobs/images/ImagesPage")),
  operator("/cluster", "cluster", Activity, "fleet", () => import("@/pages/system/status/StatusPage")),
  operator("/nodes", "nodes", Server, "fleet", () => import("@/pages/fleet/nodes/NodesPage")),
  operator("/nodes/$node", "node", Server, hidden, () => import("@/pages/fleet/nodes/NodePage")),
  operator("/gpus", "gpus", CircuitBoard, "fleet", () => import("@/pages/fleet/gpus/GpusPage")),
  everyone("/gpus/$", "gpu", CircuitBoard, hidden, () => import("@/pages/fleet/gpus/GpuPage")),
  operator("/pools", "pools", Layers, "fleet", () => import("@/pages/fleet/pools/PoolsPage")),
  everyone(
    "/reservations",
    "reservations",
    CalendarRange,
    "fleet",
    () => import("@/pages/scheduling/reservations/ReservationsPage"),
  ),
  everyone(
    "/maintenance",
    "maintenance",
    Wrench,
    "fleet",
    () => import("@/pages/scheduling/maintenance/MaintenancePage"),
  ),
  operator("/users", "users", Users, "people", () => import("@/pages/people/users/UsersPage")),
  operator("/groups", "groups", UsersRound, "people", () => import("@/pages/people/groups/GroupsPage")),
  operator(
    "/permission-groups",
    "permissionGroups",
    ShieldCheck,
    "people",
    () => import("@/pages/people/permissions/PermissionGroupsPage"),
  ),
  operator("/quotas", "quotas", Wallet, "people", () => import("@/pages/people/quotas/QuotasPage")),
  everyone("/budgets", "budgets", HandCoins, "people", () => import("@/pages/people/budgets/BudgetsPage")),
  operator("/packages", "packages", Package, "catalog", () => import("@/pages/fleet/packages/PackagesPage")),
  operator("/flavors", "flavors", SlidersHorizontal, "catalog", () => import("@/pages/fleet/flavors/FlavorsPage")),
  operator("/queues", "queues", Waypoints, "catalog", () => import("@/pages/scheduling/queues/QueuesPage")),
  everyone("/presets", "presets", BadgeCheck, "catalog", () => import("@/pages/jobs/presets/PresetsPage")),
  operator("/alerts", "alerts", BellRing, "insight", () => import("@/pages/alerts/AlertsPage")),
  operator(
    "/analysis",
    "analysis",
    ChartNoAxesCombined,
    "insight",
    () => import("@/pages/reports/analysis/AnalysisPage"),
  ),
  operator("/what-if", "whatIf", FlaskConical, "insight", () => import("@/pages/whatif/WhatIfPage")),
  operator("/what-if/$simulation", "question", FlaskConical, hidden, () => import("@/pages/whatif/SimulationPage")),
  operator("/reports", "reports", FileText, "insight", () => import("@/pages/reports/ReportsPage")),
  operator("/audit", "audit", ScrollText, "insight", () => import("@/pages/people/audit/AuditPage")),
  everyone("/settings", "settings", Settings, "account", () => import("@/pages/system/settings/SettingsPage")),
];

function pageFor(audience: Page["audience"]) {
  return (
    path: string,
    name: NavigationText,
    icon: LucideIcon,
    section: Page["section"],
    load: Page["load"],
  ): Page => ({
    path,
    name,
    icon,
    section,
    audience,
    load,
  });
}
