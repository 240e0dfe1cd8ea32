# corral's part of a pod: the first process of its container, run by the image's own /bin/sh. It starts the program,
# passes SIGTERM on to every process, enforces the time limit, and writes how the program ended into the termination
# message, from which the engine reads it. POSIX sh and /proc only: images need nothing else.
#   $1 time limit in seconds, or ""  $2 the same, rounded up  $3 grace time in seconds  $4 working directory, or ""
#   $5 virtual environment, or ""  $6 a file that a gang waits for, with the address of its first instance, or ""
#   then the program and its arguments
limit=$1 whole_limit=$2 grace=$3 workdir=$4 venv=$5 start_file=$6
shift 6
began=- main_ended=- stopped='' late='' interrupted='' code='' timer='' killer=''

uptime() { read -r now _ </proc/uptime; }

short_pause() { sleep 0.05 2>/dev/null || sleep 1; }

ended() { # REASON CODE MESSAGE
  uptime
  printf 'corral %s %s %s %s %s %s\n' "$1" "$2" "$began" "$main_ended" "$now" "$3" >/dev/termination-log
  case $2 in -) exit 1 ;; *) exit "$2" ;; esac
}

refuse() { ended launch_error - "$1"; }

stop() {
  stopped=yes interrupted=yes
  kill -TERM -1 2>/dev/null
}

reach_limit() {
  late=yes interrupted=yes
  kill -TERM -1 2>/dev/null
  ( trap '' TERM; sleep "$grace"; kill -KILL -1 ) & killer=$!
}

check_place() {
  [ -z "$workdir" ] && return
  [ -e "$workdir" ] || refuse "working directory $workdir: No such file or directory in the pod"
  [ -d "$workdir" ] || refuse "working directory $workdir: Not a directory"
  cd -- "$workdir" 2>/dev/null || refuse "working directory $workdir: Permission denied"
}

find_program() { # sets `file`
  file=
  case $1 in */*) file=$1; return ;; esac
  rest=$PATH:
  while [ -n "$rest" ]; do
    directory=${rest%%:*} rest=${rest#*:}
    if [ -f "$directory/$1" ] && [ -x "$directory/$1" ]; then file=$directory/$1; return; fi
  done
  refuse "$1: command not found"
}

check_program() { # errors that a shell would write only into the log
  find_program "$1"
  [ -e "$file" ] || refuse "$1: No such file or directory"
  if [ -d "$file" ] || [ ! -x "$file" ]; then refuse "$1: Permission denied"; fi
  case $(head -c 4 "$file" 2>/dev/null | tr -d '\000') in
    '') ;; # it cannot be read, or the image has neither head nor tr
    '#!'*)
      read -r line <"$file"
      line=${line#'#!'} line=${line# } line=${line%% *}
      [ -x "$line" ] || refuse "$1: the interpreter $line is not there" ;;
    *ELF*) ;;
    *) refuse "$1: not a program: it has no #! line" ;;
  esac
}

others() { # whether processes of the job are left
  for each in /proc/[0-9]*; do
    pid=${each#/proc/}
    case $pid in 1 | "$timer" | "$killer") continue ;; esac
    { read -r line <"$each/stat"; } 2>/dev/null || continue
    rest=${line##*) } state=${rest%% *}
    rest=${rest#* } parent=${rest%% *}
    [ "$state" = Z ] && continue
    case $parent in "$timer" | "$killer") continue ;; esac
    return 0
  done
  return 1
}

trap stop TERM
trap reach_limit USR1

if [ -n "$venv" ]; then
  export PATH="$venv/bin:$PATH"
  if [ -d "$venv/conda-meta" ]; then export CONDA_PREFIX="$venv"; else export VIRTUAL_ENV="$venv"; fi
fi
if [ -n "$start_file" ]; then
  # The program begins when every pod of the gang is there, and none of it otherwise.
  until [ -s "$start_file" ] || [ -n "$stopped" ]; do short_pause; done
  { read -r MASTER_ADDR <"$start_file"; } 2>/dev/null
  export MASTER_ADDR PET_MASTER_ADDR="$MASTER_ADDR"
fi
check_place
check_program "$1"
[ -n "$stopped" ] && ended stopped - "before it began"
uptime
began=$now
# The engine reads this line as the beginning of the program, and does not show it.
printf 'corral-up %s\n' "${NVIDIA_VISIBLE_DEVICES:-}"
( exec "$@" ) </dev/null &
main=$!
exec 2>/dev/null # the shell's own remarks about signals
[ -n "$stopped" ] && kill -TERM -1 2>/dev/null
if [ -n "$limit" ]; then
  ( sleep "$limit" 2>/dev/null || sleep "$whole_limit"; kill -USR1 1 ) & timer=$!
fi
while :; do
  interrupted=
  wait "$main"
  answer=$?
  # The shell forgets a process that it has waited for: then the earlier answer is its exit code.
  [ "$answer" = 127 ] && [ -n "$code" ] || code=$answer
  [ -n "$interrupted" ] || break
done
uptime
main_ended=$now
if [ -n "$stopped$late" ]; then
  # The rest have got SIGTERM too, and have the rest of the grace time. The kubelet, or `killer`, ends it.
  while others; do short_pause; done
fi
[ -n "$late" ] && ended timed_out "$code" ""
[ -n "$stopped" ] && ended stopped "$code" ""
ended exit_code "$code" ""
