/**
 * The limits of the API's requests, by body and field: of a number, a duration in seconds, or the length of a text.
 * Forms check them while a value is typed. The server has the final say.
 * Written by scripts/console_limits.py from docs/reference/openapi.json: do not edit.
 */

export const Acknowledgement = {
  note: { most: 1000 },
} as const;

export const AppShareCreate = {
  group: { most: 253 },
} as const;

export const ArrayStop = {
  array: { least: 1, most: 63 },
  user: { most: 253 },
} as const;

export const BudgetPut = {
  hard_micro: { least: 0, most: 1_000_000_000_000_000 },
  soft_micro: { least: 0, most: 1_000_000_000_000_000 },
} as const;

export const ChannelCreate = {
  description: { most: 500 },
  name: { most: 253 },
  url: { least: 1, most: 2000 },
} as const;

export const ChannelEdit = {
  description: { most: 500 },
  url: { least: 1, most: 2000 },
} as const;

export const CollectionCreate = {
  grace_seconds: { least: 0, most: 31_536_000 },
} as const;

export const CommitCreate = {
  message: { most: 4000 },
  parent: { least: 1, most: 64 },
  produced_by: { most: 253 },
} as const;

export const CurrencyPut = {
  currency: { most: 253 },
} as const;

export const DatasetCreate = {
  description: { most: 1000 },
  name: { most: 253 },
  target: { most: 253 },
} as const;

export const DatasetEdit = {
  description: { most: 1000 },
} as const;

export const DatasetTargetCreate = {
  name: { most: 253 },
} as const;

export const DatasetTargetEdit = {
  token: { most: 8192 },
  url: { least: 1, most: 1000 },
} as const;

export const FlavorCreate = {
  cpus_per_gpu: { least: 0 },
  default_gpus: { least: 0, most: 1_000_000 },
  description: { most: 1000 },
  name: { most: 253 },
} as const;

export const FlavorEdit = {
  cpus_per_gpu: { least: 0 },
  default_gpus: { least: 0, most: 1_000_000 },
  description: { most: 1000 },
} as const;

export const GpuMark = {
  reason: { least: 1, most: 500 },
} as const;

export const GrantCreate = {
  amount_micro: { least: -1000000000000000, most: 1_000_000_000_000_000 },
  note: { most: 500 },
} as const;

export const GroupCreate = {
  description: { most: 1000 },
  name: { most: 253 },
  pool: { most: 253 },
} as const;

export const GroupEdit = {
  description: { most: 1000 },
  pool: { most: 253 },
} as const;

export const HealthCheckCreate = {
  target: { least: 1, most: 253 },
} as const;

export const ImageCreate = {
  address: { least: 1, most: 512 },
  credential: { most: 253 },
  description: { most: 1000 },
  name: { most: 253 },
} as const;

export const ImageEdit = {
  address: { least: 1, most: 512 },
  credential: { most: 253 },
  description: { most: 1000 },
} as const;

export const InboxChannelCode = {
  code: { least: 1, most: 20 },
} as const;

export const InboxChannelCreate = {
  address: { least: 1, most: 2000 },
  name: { most: 253 },
} as const;

export const InboxRead = {
  until: { least: 0, most: 9_007_199_254_740_992 },
} as const;

export const JobArray = {
  app: { least: 1, most: 63 },
  app_name: { most: 63 },
  array: { largestIndex: 1_000_000, most: 10_000, mostIndexes: 1000, mostItems: 10_000 },
  checkpoint_interval: { least: 1, most: 604_800 },
  commit_outputs: { most: 1000 },
  cpus: { least: 0, most: 1_000_000 },
  description: { most: 500 },
  flavor: { least: 1, most: 63 },
  git: { most: 1000 },
  git_dir: { most: 1000 },
  git_ref: { most: 250 },
  git_secret: { most: 63 },
  gpus: { least: 0, most: 1_000_000 },
  grace: { least: 0, most: 3600 },
  image: { least: 1, most: 1024 },
  max_gpus: { least: 1, most: 10_000 },
  max_retries: { least: 0, most: 100 },
  min_gpus: { least: 1, most: 10_000 },
  name: { most: 253 },
  nodes: { least: 1, most: 10_000 },
  package: { least: 1, most: 63 },
  port: { least: 0, most: 65_535 },
  preset: { least: 1, most: 63 },
  priority: { least: 0, most: 100 },
  queue: { least: 1, most: 63 },
  venv: { most: 4096 },
  workdir: { most: 4096 },
} as const;

export const JobClone = {
  app: { least: 1, most: 63 },
  app_name: { most: 63 },
  checkpoint_interval: { least: 1, most: 604_800 },
  commit_outputs: { most: 1000 },
  cpus: { least: 0, most: 1_000_000 },
  description: { most: 500 },
  flavor: { least: 1, most: 63 },
  git: { most: 1000 },
  git_dir: { most: 1000 },
  git_ref: { most: 250 },
  git_secret: { most: 63 },
  gpus: { least: 0, most: 1_000_000 },
  grace: { least: 0, most: 3600 },
  image: { least: 1, most: 1024 },
  max_gpus: { least: 1, most: 10_000 },
  max_retries: { least: 0, most: 100 },
  min_gpus: { least: 1, most: 10_000 },
  name: { most: 253 },
  nodes: { least: 1, most: 10_000 },
  package: { least: 1, most: 63 },
  port: { least: 0, most: 65_535 },
  preset: { least: 1, most: 63 },
  priority: { least: 0, most: 100 },
  queue: { least: 1, most: 63 },
  venv: { most: 4096 },
  workdir: { most: 4096 },
} as const;

export const JobCreate = {
  app: { least: 1, most: 63 },
  app_name: { most: 63 },
  checkpoint_interval: { least: 1, most: 604_800 },
  commit_outputs: { most: 1000 },
  cpus: { least: 0, most: 1_000_000 },
  description: { most: 500 },
  flavor: { least: 1, most: 63 },
  git: { most: 1000 },
  git_dir: { most: 1000 },
  git_ref: { most: 250 },
  git_secret: { most: 63 },
  gpus: { least: 0, most: 1_000_000 },
  grace: { least: 0, most: 3600 },
  image: { least: 1, most: 1024 },
  max_gpus: { least: 1, most: 10_000 },
  max_retries: { least: 0, most: 100 },
  min_gpus: { least: 1, most: 10_000 },
  name: { most: 253 },
  nodes: { least: 1, most: 10_000 },
  package: { least: 1, most: 63 },
  port: { least: 0, most: 65_535 },
  preset: { least: 1, most: 63 },
  priority: { least: 0, most: 100 },
  queue: { least: 1, most: 63 },
  venv: { most: 4096 },
  workdir: { most: 4096 },
} as const;

export const JobEdit = {
  cpus: { least: 0, most: 1_000_000 },
  description: { most: 500 },
  flavor: { least: 1, most: 63 },
  gpus: { least: 0, most: 1_000_000 },
  max_gpus: { least: 1, most: 10_000 },
  min_gpus: { least: 1, most: 10_000 },
  nodes: { least: 1, most: 10_000 },
  package: { least: 1, most: 63 },
  priority: { least: 0, most: 100 },
  queue: { least: 1, most: 63 },
} as const;

export const JobMigrate = {
  to: { most: 253 },
} as const;

export const JobResize = {
  gpus: { least: 1, most: 10_000 },
} as const;

export const LicencePut = {
  token: { least: 1, most: 4096 },
} as const;

export const LoginCreate = {
  new_password: { least: 8, most: 256 },
  password: { least: 1, most: 1024 },
  provider: { most: 253 },
  token_name: { least: 1, most: 63 },
  user: { least: 1, most: 253 },
} as const;

export const LoginPut = {
  registry: { most: 253 },
  secret: { least: 1, most: 8192 },
  username: { least: 1, most: 253 },
} as const;

export const MaintenanceCreate = {
  drain_before: { least: 0, most: 2_592_000 },
  every_days: { least: 1, most: 366 },
  name: { most: 253 },
  note: { most: 1000 },
} as const;

export const MaintenanceEdit = {
  drain_before: { least: 0, most: 2_592_000 },
  every_days: { least: 1, most: 366 },
  note: { most: 1000 },
} as const;

export const ObjectStoreCreate = {
  access_key: { most: 253 },
  bucket: { most: 253 },
  endpoint: { most: 512 },
  name: { most: 253 },
  prefix: { most: 512 },
  region: { most: 253 },
  secret: { most: 16_384 },
} as const;

export const ObjectStoreEdit = {
  access_key: { most: 253 },
  endpoint: { most: 512 },
  region: { most: 253 },
  secret: { most: 16_384 },
} as const;

export const OnboardCreate = {
  group: { most: 253 },
  provider: { most: 253 },
} as const;

export const PackageCreate = {
  cpus: { least: 0 },
  description: { most: 1000 },
  flavor: { most: 253 },
  gpus: { least: 0 },
  name: { most: 253 },
} as const;

export const PackageEdit = {
  cpus: { least: 0 },
  description: { most: 1000 },
  flavor: { most: 253 },
  gpus: { least: 0 },
} as const;

export const PasswordChange = {
  new: { least: 8, most: 256 },
  old: { least: 1, most: 1024 },
} as const;

export const PermissionGroupCreate = {
  description: { most: 1000 },
  name: { most: 253 },
} as const;

export const PermissionGroupEdit = {
  description: { most: 1000 },
} as const;

export const PoolCreate = {
  description: { most: 1000 },
  name: { most: 253 },
} as const;

export const PoolEdit = {
  description: { most: 1000 },
} as const;

export const PresetAssetCreate = {
  description: { most: 500 },
  format: { most: 100 },
  name: { least: 1, most: 63 },
  path: { most: 255 },
  source: { least: 1, most: 400 },
} as const;

export const PresetCreate = {
  yaml: { least: 1, most: 262_144 },
} as const;

export const PresetRun = {
  name: { most: 253 },
} as const;

export const PricePut = {
  model: { most: 253 },
  money_micro: { least: 0, most: 1_000_000_000_000_000 },
  weight_micro: { least: 0, most: 1_000_000_000_000_000 },
} as const;

export const ProfileEdit = {
  display_name: { most: 100 },
  email: { most: 254 },
} as const;

export const ProgramCreate = {
  workdir: { most: 4096 },
} as const;

export const ProviderCreate = {
  api_token: { most: 4096 },
  client_id: { most: 1000 },
  client_secret: { most: 4096 },
  group: { most: 253 },
  groups_claim: { most: 253 },
  id: { most: 253 },
  issuer: { most: 1000 },
  organisation: { most: 253 },
  title: { most: 63 },
} as const;

export const ProviderEdit = {
  api_token: { most: 4096 },
  client_id: { most: 1000 },
  client_secret: { most: 4096 },
  group: { most: 253 },
  groups_claim: { most: 253 },
  issuer: { most: 1000 },
  organisation: { most: 253 },
  title: { most: 63 },
} as const;

export const QueueCreate = {
  description: { most: 500 },
  guaranteed_gpus: { least: 0, most: 1_000_000 },
  max_gpus: { least: 0, most: 1_000_000 },
  max_job_gpus: { least: 0, most: 1_000_000 },
  max_length: { least: 0, most: 10_000_000 },
  min_job_gpus: { least: 0, most: 1_000_000 },
  name: { most: 253 },
  placement: { most: 253 },
  policy: { most: 253 },
  pool: { most: 253 },
  weight: { most: 1000 },
} as const;

export const QueueEdit = {
  description: { most: 500 },
  guaranteed_gpus: { least: 0, most: 1_000_000 },
  max_gpus: { least: 0, most: 1_000_000 },
  max_job_gpus: { least: 0, most: 1_000_000 },
  max_length: { least: 0, most: 10_000_000 },
  min_job_gpus: { least: 0, most: 1_000_000 },
  placement: { most: 253 },
  policy: { most: 253 },
  weight: { most: 1000 },
} as const;

export const ReportCreate = {
  since: { least: 1, most: 253 },
  until: { least: 1, most: 253 },
} as const;

export const ReservationCreate = {
  gpus: { least: 1, most: 100_000 },
  model: { most: 253 },
  name: { most: 253 },
  note: { most: 1000 },
  pool: { most: 253 },
} as const;

export const ReservationEdit = {
  gpus: { least: 1, most: 100_000 },
  model: { most: 253 },
  note: { most: 1000 },
} as const;

export const RuleChanges = {
  protected_starts: { least: 0, most: 1000 },
  score_memory_seconds: { least: 1, most: 1_000_000_000 },
} as const;

export const RuleCreate = {
  description: { most: 1000 },
  name: { most: 253 },
  signal: { most: 253 },
  threshold: { least: -1000000000000000, most: 1_000_000_000_000_000 },
} as const;

export const RuleEdit = {
  description: { most: 1000 },
  signal: { most: 253 },
  threshold: { least: -1000000000000000, most: 1_000_000_000_000_000 },
} as const;

export const ScheduleCreate = {
  hour: { least: 0, most: 23 },
  name: { most: 253 },
  weekday: { least: 0, most: 6 },
} as const;

export const ScheduleEdit = {
  hour: { least: 0, most: 23 },
  weekday: { least: 0, most: 6 },
} as const;

export const SecretPut = {
  group: { most: 253 },
  value: { least: 1, most: 65_536 },
} as const;

export const SilenceCreate = {
  reason: { most: 1000 },
  rule: { most: 253 },
  subject: { most: 253 },
} as const;

export const SimulationCreate = {
  days: { most: 92 },
  name: { most: 253 },
  since: { least: 1, most: 253 },
  until: { least: 1, most: 253 },
} as const;

export const SshKeyCreate = {
  name: { least: 1, most: 63 },
  public_key: { least: 1, most: 65_536 },
} as const;

export const TagPut = {
  version: { least: 1, most: 64 },
} as const;

export const TaskCreate = {
  gpus: { least: 1, most: 1_000_000 },
  task: { most: 253 },
} as const;

export const TokenCreate = {
  expires_in_days: { most: 3650 },
  name: { least: 1, most: 63 },
} as const;

export const UploadCreate = {
  part_bytes: { least: 65_536, most: 268_435_456 },
  path: { least: 1, most: 4096 },
  size: { least: 0, most: 1_125_899_906_842_624 },
} as const;

export const UserCreate = {
  display_name: { most: 100 },
  email: { most: 254 },
  group: { most: 253 },
  name: { most: 253 },
  password: { least: 8, most: 256 },
  permission_group: { most: 253 },
} as const;

export const UserEdit = {
  display_name: { most: 100 },
  email: { most: 254 },
  password: { least: 8, most: 256 },
  permission_group: { most: 253 },
} as const;

export const VolumeCreate = {
  cluster: { most: 253 },
  description: { most: 500 },
  name: { most: 253 },
  object_store: { most: 253 },
  prefix: { most: 512 },
} as const;

export const VolumeEdit = {
  description: { most: 500 },
} as const;

export const WorkbenchCreate = {
  cpus: { least: 0, most: 1_000_000 },
  description: { most: 500 },
  flavor: { least: 1, most: 63 },
  gpus: { least: 0, most: 1_000_000 },
  image: { least: 1, most: 1024 },
  name: { most: 253 },
  package: { least: 1, most: 63 },
  priority: { least: 0, most: 100 },
  queue: { least: 1, most: 63 },
  venv: { most: 4096 },
  workdir: { most: 4096 },
} as const;
