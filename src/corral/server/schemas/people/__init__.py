"""People: users, groups, permissions, quotas, scores, tokens, sign-in and the audit log."""
