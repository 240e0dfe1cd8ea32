"""The programs of a workbench, for every engine."""
