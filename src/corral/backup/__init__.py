"""Backups: archives of tables and files in a directory or a bucket.

    corral-backups.json          the format, and the installation whose backups these are
    backups/<id>.json            the manifest of one backup; written last, so a backup without one does not count
    packs/<xx>/<id>              compressed pieces of tables and files, shared by all backups that need them

A piece is stored once, under the digest of its content. The package knows nothing of SQL: tables are pages of encoded
rows.
"""
