import { Tooltip } from "@mantine/core";
import { useEffect, useState } from "react";

const DELAY_MS = 250;

export default function HintBox({ target, label }: { target: HTMLElement; label: string }) {
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    const timer = window.setTimeout(() => setOpen(true), DELAY_MS);
    return () => window.clearTimeout(timer);
  }, []);
  return <Tooltip target={target} label={label} opened={isOpen} />;
}
