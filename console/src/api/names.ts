/** The server's rules for names, checked while a name is typed. The server has the final say. */

/** Queues, flavors, packages, pools, groups, permission groups and reservations. */
export const SETTING_NAME = /^[A-Za-z0-9_-]{1,63}$/;
export const JOB_NAME = /^[A-Za-z0-9_-]{4,63}$/;
export const VOLUME_NAME = /^[A-Za-z0-9_-]{2,63}$/;
export const DATASET_NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{1,62}$/;
/** Tags of datasets, and dataset targets. */
export const TAG_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;
/** Images, registry logins and object stores. */
export const IMAGE_NAME = /^[a-z0-9][a-z0-9._-]{0,62}$/;
/** Alert rules. */
export const RULE_NAME = /^[a-z0-9][a-z0-9-]{0,62}$/;
export const USER_NAME = /^[a-z_][a-z0-9_.-]{0,31}$/;
export const VARIABLE_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
