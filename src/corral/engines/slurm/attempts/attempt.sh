#!/bin/bash
# corral's part of an attempt on the nodes of a Slurm cluster: claims it once, runs its program on each node, and
# reports how it ended. Plain bash: nodes need nothing else, and a job costs little more than its own program.
#   . attempt.sh                 in the script that Slurm starts on the first node, which sets the shared variables
#   attempt.sh instance PLACE    one instance of a gang, on each node; the shared variables are in the PLACE of the first
[ "$1" = instance ] && . "$2/attempt" # attempt, self, places, news, stop, hurry, never, limit, grace, nodes, ranks

make_room() {
  # Slurm starts the next job when one is over, and else once a second. While corral submits one job after the other,
  # this job stays until the next is in Slurm's queue; $never is never written to, so waiting there costs no process.
  local mine=${EPOCHREALTIME/./} last seconds pause
  [ -p "$never" ] && exec {pause}<>"$never" || return
  # The next job is rarely there before the first wait is over, and each check costs the node something.
  for seconds in 0.15 0.1 0.05 0.05 0.05; do
    read -r last 2>/dev/null <"$hurry" || return
    (( last > mine || mine - last > 3000000 )) && return
    read -r -t "$seconds" -u "$pause" last
  done
}

# The job that creates the file owns the attempt: a second Slurm job for it, submitted after a crash, does nothing. Nor
# does the same job again, if Slurm requeues it although corral forbids that: corral decides about the next attempt.
# Without the directory the job has failed: a server that was restored from a backup must not take it for completed.
claim() {
  set -C
  { echo "claimed $SLURM_JOB_ID" >"$1"; } 2>/dev/null || { [ -d "${1%/*}" ]; exit; }
  set +C
}

if [ "$nodes" -gt 1 ] && [ "$1" != instance ]; then
  claim "$places/$attempt.0/claim"
  trap : TERM
  # URG is the stop of slurmrestd (see rest_format.py): the steps get their signal from here.
  trap 'scancel --signal=TERM "$SLURM_JOB_ID" 2>/dev/null' URG
  # --mem=0: all of the job's memory without keeping it from steps that the program itself starts
  srun --nodes="$nodes" --ntasks="$nodes" --ntasks-per-node=1 --kill-on-bad-exit=0 --wait=0 --unbuffered \
    --mem=0 --export=ALL /bin/bash "$self" instance "$places/$attempt.0" </dev/null &
  step=$!
  while kill -0 $step 2>/dev/null; do wait $step; done
  wait $step; code=$?
  make_room
  exit $code
fi

rank=0
[ "$nodes" -gt 1 ] && rank=${ranks[$SLURMD_NODENAME]}
place=$places/$attempt.$rank
own= # its directory on this node's disk
claim "$place/told"
image=
. "$place/instance" # program, workdir, the functions `environment` and `storage`, and those of an image
: >"$place/instance" # it may hold secrets: from here on they are in this process only

ended() { # REASON CODE SIGNAL MESSAGE
  [ -n "$own" ] && { rm -rf -- "$own" 2>/dev/null || { chmod -R u+rwX -- "$own"; rm -rf -- "$own"; }; }
  printf 'end %s %s %s %s %s\n' "$EPOCHREALTIME" "$1" "$2" "$3" "$4" >>"$place/told"
  echo "$attempt.$rank" >>"$news"
  [ "$nodes" -gt 1 ] || [ "$1" = outside ] || make_room
  exit "${2/-/1}"
}

refuse() { ended launch_error - - "$1"; }

check_place() {
  [ -z "$workdir" ] && { cd "$place" || refuse "working directory $place: Permission denied"; return; }
  [ -e "$workdir" ] || refuse "working directory $workdir: No such file or directory"
  [ -d "$workdir" ] || refuse "working directory $workdir: Not a directory"
  cd -- "$workdir" 2>/dev/null || refuse "working directory $workdir: Permission denied"
}

check_program() { # errors that a shell would write only into the log
  local name=${program[0]} file line
  case $name in
    */*) file=$name ;;
    *) file=$(environment; type -P -- "$name") || refuse "$name: command not found" ;;
  esac
  [ -e "$file" ] || refuse "$name: No such file or directory"
  [ -d "$file" ] || [ ! -x "$file" ] && refuse "$name: Permission denied"
  IFS= read -r -d '' -n 2 line <"$file" 2>/dev/null
  case $line in
    '#!')
      IFS= read -r line <"$file"
      line=${line#'#!'}; line=${line# }; line=${line%% *}
      [ -x "$line" ] || refuse "$name: the interpreter $line is not there" ;;
    $'\x7fE') ;;
    *) refuse "$name: not a program: it has no #! line" ;;
  esac
}

stopped_early() { # before the program began; who asked is known by the file
  [ -e "$stop" ] && ended exit_code 143 15 "$EPOCHREALTIME"
  ended outside 143 15 "$EPOCHREALTIME"
}

fetch_image() { # into a file of the job's account, unless it is there; a path is a file already
  local lock puller was_asked= message
  case $image in
    /*) image_file=$image; [ -r "$image" ] ||
      ended image_pull_error - - "image $image: not there, or not readable for this account" ;;
  esac
  [ -e "$image_file" ] && return
  mkdir -p -m 700 -- "${image_file%/*}" 2>/dev/null
  { exec {lock}>>"$image_file.lock" && flock "$lock"; } 2>/dev/null || refuse "images cannot be kept in ${image_file%/*}"
  [ -e "$image_file" ] && { exec {lock}>&-; return; }
  echo "corral: pulling image $image" >>"$place/log"
  ( registry_login; export HOME=$account_home; exec "$apptainer" pull --force --disable-cache "$image_file.new" "docker://$image" ) >"$place/pull" 2>&1 </dev/null &
  puller=$!
  trap 'was_asked=yes; kill -KILL "$puller"' TERM URG
  [ -e "$stop" ] && stopped_early
  while kill -0 "$puller" 2>/dev/null; do wait "$puller"; done
  wait "$puller" || {
    rm -f -- "$image_file.new"
    [ -n "$was_asked" ] && stopped_early
    message=$(tail -n 1 -- "$place/pull")
    message=${message#FATAL:}
    ended image_pull_error - - "image $image: ${message#"${message%%[! ]*}"}"
  }
  mv -- "$image_file.new" "$image_file"
  trap - TERM URG
  exec {lock}>&-
}

enter_image() { # sets `runner`, the words before the program
  local bind binds
  type -P -- "$apptainer" >/dev/null || refuse "$apptainer is not installed on $SLURMD_NODENAME"
  case $PWD in *[:,]*) refuse "$PWD: a directory with ':' or ',' in its name cannot be mounted in a container" ;; esac
  fetch_image
  [ -n "$own" ] || own=$(mktemp -d -- "${TMPDIR:-/tmp}/corral-$attempt-$rank.XXXXXXXX" 2>/dev/null) ||
    own=$(mktemp -d -- "$place/tmp.XXXXXXXX") || refuse "temporary files cannot be made on $SLURMD_NODENAME"
  mkdir -- "$own/.tmp"
  runner=("$apptainer" --silent exec --cleanenv --no-eval --no-privs --no-mount home,tmp,cwd --home "${image_home:-$own/.tmp}")
  runner+=(--bind "$own/.tmp:/tmp" --bind "$PWD" --cwd "$PWD")
  image_binds
  for bind in "${binds[@]}"; do runner+=(--bind "$bind"); done
  # Slurm opens the device files of the job's GPUs only.
  [ -n "$image_gpus" ] && [ -e /dev/nvidiactl ] && runner+=(--nv)
  [ -n "$image_gpus" ] && [ -e /dev/kfd ] && runner+=(--rocm)
  runner+=("$image_file")
  declare -p runner >"$place/runner" # for shells beside the program
}

others() { # processes of this instance that are still there, in any session or group
  grep -lszxF "CORRAL_RUN_DIR=$place" /proc/[0-9]*/environ
}

is_alone() { # in the control group of this step: then no process needs to be searched for
  local line path pid
  while IFS= read -r line; do
    case $line in
      *:freezer:*/job_"$SLURM_JOB_ID"/*) path=/sys/fs/cgroup/freezer${line##*:} ;;
      0::*/job_"$SLURM_JOB_ID"/*) path=/sys/fs/cgroup${line#0::} ;;
    esac
  done </proc/self/cgroup
  [ -n "$path" ] && [ -r "$path/cgroup.procs" ] || return 1
  while read -r pid; do
    [ "$pid" = $$ ] || return 1
  done <"$path/cgroup.procs"
}

end_others() { # they got TERM too: they have the rest of the grace time, then they are killed
  is_alone && return
  local until=$1 left pids
  while left=$(others); [ -n "$left" ]; do
    if (( ${EPOCHREALTIME/./} >= until )); then
      pids=${left//\/proc\//}; kill -KILL ${pids//\/environ/} 2>/dev/null
    fi
    sleep 0.02
  done
}

asked_to_stop() { # by the server, which has written the grace time and may write again; or else by Slurm itself
  local seconds
  read -r seconds 2>/dev/null <"$stop" || { seconds=$grace; outside=yes; }
  stop_by=$(( ${EPOCHREALTIME/./} + ${seconds%.*} * 1000000 + 10#$(printf '%.6s' "${seconds#*.}000000") ))
  [ -n "$killer" ] && kill -KILL -- -"$killer" 2>/dev/null
  ( sleep "$seconds"; kill -KILL -- -"$main" ) & killer=$!
  local pids; pids=$(others); pids=${pids//\/proc\//}
  kill -TERM "$main" ${pids//\/environ/} 2>/dev/null
}

was_out_of_memory() { # as the kernel reports in the control group of this step
  local line file
  while IFS= read -r line; do
    case $line in
      *:memory:*) file=/sys/fs/cgroup/memory${line##*:}/memory.oom_control ;;
      0::/*) file=/sys/fs/cgroup${line#0::}/memory.events ;;
      *) continue ;;
    esac
    while read -r name count; do
      [ "$name" = oom_kill ] && [ "${count:-0}" -gt 0 ] && return 0
    done 2>/dev/null <"$file"
  done </proc/self/cgroup
  return 1
}

storage
check_place
runner=() # empty: the node's own files
if [ -n "$image" ]; then enter_image; else check_program; fi
stop_by=0 killer= outside=
set -m # programs get a group of their own, and the usual signals
trap asked_to_stop TERM URG
# LC_ALL=C is for this script alone: with a language, a shell reads dozens of files first.
( export -n LC_ALL; environment; export CORRAL_RUN_DIR=$place; exec -- "${runner[@]}" "${program[@]}" ) >>"$place/log" 2>&1 </dev/null &
main=$!
printf 'up %s\n' "$EPOCHREALTIME" >>"$place/told"
echo "$attempt.$rank" >>"$news"
if [ -n "$limit" ]; then
  ( sleep "$limit"; : >"$place/late"; kill -TERM -- -"$main"; sleep "$grace"; kill -KILL -- -"$main" ) & timer=$!
fi
[ -e "$stop" ] && asked_to_stop
while kill -0 "$main" 2>/dev/null; do wait "$main"; done
wait "$main"; code=$?
trap : TERM URG
decided=$EPOCHREALTIME
[ -n "$timer" ] && kill -KILL -- -"$timer" 2>/dev/null
[ -n "$killer" ] && kill -KILL -- -"$killer" 2>/dev/null
end_others "$stop_by"
signal=-
(( code > 128 && code < 193 )) && signal=$(( code - 128 ))
if [ -e "$place/late" ]; then ended timed_out "$code" "$signal" "$decided"; fi
if (( code == 137 )) && was_out_of_memory; then ended oom_killed "$code" "$signal" "$decided"; fi
# Slurm knows why: preempted, timed out, cancelled by a user.
if [ -n "$outside" ]; then ended outside "$code" "$signal" "$decided"; fi
ended exit_code "$code" "$signal" "$decided"
