/** What is in a version. Nothing in it can change: it can be read and downloaded. */
import { Stack } from "@mantine/core";
import { FolderOpen, History } from "lucide-react";
import { useMemo } from "react";

import { PREFIX } from "@/api/client";
import { useAll, usePages } from "@/api/useAll";
import { useFilters } from "@/app/useFilters";
import { VersionSelect } from "@/pages/datasets/CompareTab";
import { refOf, type Dataset } from "@/pages/datasets/dataset";
import { words } from "@/pages/datasets/words";
import { CopyText } from "@/parts/CopyText";
import { EmptyState } from "@/parts/EmptyState";
import { FolderView } from "@/parts/FolderView";
import { useWords } from "@/words/words";

const PLACE = { version: "", path: "" };
