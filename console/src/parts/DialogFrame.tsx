/** Draws the dialogs that are opened by a call. */
import { ModalsProvider } from "@mantine/modals";
import { useEffect } from "react";

import { startDialogs, stopDialogs } from "@/parts/dialogs";

export default function Dialogs() {
  return (
    <ModalsProvider>
      <Start />
    </ModalsProvider>
  );
}

/** Runs when the provider around it hears what is opened. */
function Start() {
  useEffect(() => {
    startDialogs();
    return stopDialogs;
  }, []);
  return null;
}
