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
. "$place/instance" # program, workdir, and the functions `environment` and `storage`
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
check_program
stop_by=0 killer= outside=
set -m # programs get a group of their own, and the usual signals
trap asked_to_stop TERM URG
# LC_ALL=C is for this script alone: with a language, a shell reads dozens of files first.
( export -n LC_ALL; environment; export CORRAL_RUN_DIR=$place; exec -- "${program[@]}" ) >>"$place/log" 2>&1 </dev/null &
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
