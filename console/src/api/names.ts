/**
 * The server's rules for names, checked while a name is typed. The server has the final say.
 * Written by scripts/console_names.py from src/corral/core/names.py: do not edit.
 */

/** Queues, flavors, packages, pools, groups, permission groups, reservations and presets. */
export const SETTING_NAME = /^[A-Za-z0-9_-]{1,63}$/;
/** Jobs and workbenches. */
export const JOB_NAME = /^[A-Za-z0-9_-]{4,63}$/;
/** Volumes. */
export const VOLUME_NAME = /^[A-Za-z0-9_-]{2,63}$/;
/** Datasets. */
export const DATASET_NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{1,62}$/;
/** Tags of dataset versions. */
export const TAG_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;
/** Images, registry logins, object stores and dataset targets. */
export const IMAGE_NAME = /^[a-z0-9][a-z0-9._-]{0,62}$/;
/** Alert rules, channels and schedules of reports. */
export const RULE_NAME = /^[a-z0-9][a-z0-9-]{0,62}$/;
/** Secrets. */
export const SECRET_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;
/** Users. */
export const USER_NAME = /^[a-z_][a-z0-9_.-]{0,31}$/;
/** Environment variables. */
export const VARIABLE_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
