"""Directories (LDAP): passwords are checked, and people and their groups are read, by requests over one connection."""
