import { Menu } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { BookOpen, LogOut, UserRound } from "lucide-react";

import { useMe, useSignOut } from "@/app/session";
import { texts } from "@/app/shell/texts";
import type { Opener } from "@/parts/OpensLater";
import { useOpensAtOnce } from "@/parts/useOpensAtOnce";
import { useTexts } from "@/texts/texts";

export default function AccountItems({ button }: { button: Opener }) {
  const t = useTexts(texts);
  const me = useMe();
  const signOut = useSignOut();
  const { ref, isOpen, setOpen } = useOpensAtOnce();
  return (
    <Menu position="bottom-end" width={220} opened={isOpen} onChange={setOpen}>
      <Menu.Target>{button({ ref })}</Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          {me.display_name || me.name} · {t(me.role === "operator" ? "operator" : "scientist")}
        </Menu.Label>
        <Menu.Item leftSection={<UserRound size={15} />} renderRoot={(props) => <Link to="/settings" {...props} />}>
          {t("profile")}
        </Menu.Item>
        <Menu.Item leftSection={<BookOpen size={15} />} component="a" href="/api/docs" target="_blank">
          {t("apiDocs")}
        </Menu.Item>
        <Menu.Divider />
        <Menu.Item leftSection={<LogOut size={15} />} onClick={() => void signOut()}>
          {t("signOut")}
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
