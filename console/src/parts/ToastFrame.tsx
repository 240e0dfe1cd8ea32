import { Notifications } from "@mantine/notifications";

export default function ToastFrame() {
  return <Notifications position="bottom-right" limit={4} />;
}
